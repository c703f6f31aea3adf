// Primitives on values that only MindIR has: tuples, order tokens, closures, and the parameters
// that a model assigns.
#include <algorithm>

#include "tools/msconvert/mindir/import_model.h"

namespace msrt::mindir_import {
namespace {

Status Expect(const Items& inputs, size_t least) {
  if (inputs.size() >= least) return OkStatus();
  return InvalidModel("has ", inputs.size(), " inputs, needs ", least);
}

Result<Item> PartOf(const Items& inputs) {
  MSRT_RETURN_IF_ERROR(Expect(inputs, 2));
  const Item& tuple = inputs[0];
  if (tuple.is(ItemKind::kUnknown)) return Item();
  if (!tuple.is(ItemKind::kTuple)) return InvalidModel("takes a part of ", Describe(tuple));
  if (!inputs[1].is(ItemKind::kNumber)) return Unsupported("the index must be a constant");
  const auto count = static_cast<int64_t>(tuple.part_count());
  const int64_t index = inputs[1].integer < 0 ? inputs[1].integer + count : inputs[1].integer;
  if (index < 0 || index >= count)
    return InvalidModel("takes part ", inputs[1].integer, " of a tuple of ", count);
  return tuple.part(static_cast<size_t>(index));
}

Result<Item> Bound(const Items& inputs) {
  MSRT_RETURN_IF_ERROR(Expect(inputs, 1));
  const Item& function = inputs[0];
  if (function.is(ItemKind::kUnknown)) return Item();
  if (!function.is(ItemKind::kFunction))
    return Unsupported("binds arguments of ", Describe(function), " that is chosen elsewhere");
  Items parts;
  if (function.parts != nullptr) parts = *function.parts;
  parts.insert(parts.end(), inputs.begin() + 1, inputs.end());
  return Compound(ItemKind::kFunction, std::move(parts), function.index);
}

Result<Item> Chosen(const Items& inputs, bool by_index) {
  MSRT_RETURN_IF_ERROR(Expect(inputs, by_index ? 2 : 3));
  Items parts{inputs[0]};
  if (by_index) {
    if (!inputs[1].is(ItemKind::kTuple))
      return InvalidModel("chooses from ", Describe(inputs[1]), ", must be a tuple of functions");
    parts.insert(parts.end(), inputs[1].parts->begin(), inputs[1].parts->end());
    if (parts.size() < 2) return InvalidModel("chooses from an empty tuple");
  } else {
    parts.insert(parts.end(), inputs.begin() + 1, inputs.begin() + 3);
  }
  MSRT_ASSIGN_OR_RETURN(Item choice, Compound(ItemKind::kSwitch, std::move(parts)));
  choice.by_index = by_index;
  return choice;
}

}  // namespace

// Writes a weight, which is state from now on. The result is the written value.
Result<Item> Importer::Assign(const FileNode& node, const Items& inputs, Scope* scope) {
  MSRT_RETURN_IF_ERROR(Expect(inputs, 2));
  if (!inputs[0].is(ItemKind::kParameter))
    return Unsupported("assigns to ", Describe(inputs[0]), ", which is no parameter of the model");
  Weights::Entry& entry = weights_.entries[inputs[0].index];
  entry.assigned = true;
  const std::string name = ModelFile::Short(node.proto->output(0));
  MSRT_ASSIGN_OR_RETURN(ValueId value, scope->draft.Materialize(inputs[1], name + "/value"));
  if (node.target.op != "Assign") {
    MSRT_ASSIGN_OR_RETURN(const ValueId before,
                          scope->draft.Materialize(inputs[0], name + "/before"));
    MSRT_ASSIGN_OR_RETURN(value, scope->draft.Add(node.target.op == "AssignAdd" ? "Add" : "Sub",
                                                  name, {before, value}));
  }
  if (entry.slot >= 0) {
    MSRT_RETURN_IF_ERROR(
        scope->draft
            .AddMany("msrt", "StateWrite", name + "/write", {value}, {{"slot", entry.slot}}, 0)
            .status());
  }
  return Item::Tensor(value);
}

Result<bool> Importer::ImportPlumbing(const FileNode& node, const Items& inputs, Scope* scope,
                                      Item* result) {
  const std::string& op = node.target.op;
  const auto give = [&](Result<Item> item) -> Result<bool> {
    MSRT_ASSIGN_OR_RETURN(*result, std::move(item));
    return true;
  };
  if (op == "MakeTuple" || op == "MakeList" || op == "make_tuple" || op == "make_list")
    return give(Compound(ItemKind::kTuple, inputs));
  if (op == "TupleGetItem" || op == "ListGetItem") return give(PartOf(inputs));
  if (op == "UpdateState" || op == "Print") return give(Item::Plain(ItemKind::kMonad));
  if (op == "Depend" || op == "StopGradient") {
    MSRT_RETURN_IF_ERROR(Expect(inputs, 1));
    return give(inputs[0]);
  }
  if (op == "Load") {
    MSRT_RETURN_IF_ERROR(Expect(inputs, 1));
    const bool state =
        inputs[0].is(ItemKind::kParameter) && weights_.entries[inputs[0].index].slot >= 0;
    if (!state) return give(inputs[0]);
    MSRT_ASSIGN_OR_RETURN(const ValueId read, scope->draft.Materialize(inputs[0], ""));
    return give(Item::Tensor(read));
  }
  if (op == "Partial") return give(Bound(inputs));
  if (op == "Switch") return give(Chosen(inputs, false));
  if (op == "SwitchLayer" || op == "switch_layer") return give(Chosen(inputs, true));
  if (op == "Assign" || op == "AssignAdd" || op == "AssignSub")
    return give(Assign(node, inputs, scope));
  return false;
}

}  // namespace msrt::mindir_import
