// Imports calls of functions, and of functions that a switch chooses.
#include <algorithm>
#include <unordered_map>

#include "tools/msconvert/mindir/import_model.h"

namespace msrt::mindir_import {
namespace {

constexpr size_t kMaxPassedValues = 10'000'000;  // in all calls of a model

std::vector<ValueId> LeavesOf(const Items& items) {
  std::vector<ValueId> leaves;
  for (const Item& i : items) AppendLeaves(i, &leaves);
  return leaves;
}

// The values that a caller passes to a graph, each once.
struct PassedValues {
  std::vector<ValueId> values;
  std::unordered_map<uint32_t, uint32_t> position;

  // Replaces values by positions. A constant of the caller is a constant of the callee too, so that
  // kernels see weights as such.
  Item Put(const Item& item, const GraphDraft& draft) {
    return Mapped(item, [&](const Item& leaf) {
      if (const ConstTensor* constant = draft.constant(leaf.value)) return Item::Data(*constant);
      const auto [found, added] =
          position.try_emplace(IndexOf(leaf.value), static_cast<uint32_t>(values.size()));
      if (added) values.push_back(leaf.value);
      Item numbered = leaf;
      numbered.value = ValueId(found->second);
      return numbered;
    });
  }
};

// Sets the declared types of the tensors of an item, if the declaration has the same structure.
void DeclareLeaves(const Item& item, const Declaration& declared,
                   std::vector<Instance::Input>* inputs, size_t* next) {
  if (item.is(ItemKind::kTensor)) {
    if (declared.kind == ItemKind::kTensor) (*inputs)[*next].type = declared.type;
    ++*next;
    return;
  }
  if (item.is(ItemKind::kTuple) && declared.kind == ItemKind::kTuple &&
      declared.parts.size() == item.part_count()) {
    for (size_t i = 0; i < item.part_count(); ++i)
      DeclareLeaves(item.part(i), declared.parts[i], inputs, next);
    return;
  }
  *next += item.leaves;
}

}  // namespace

Result<Item> ItemOver(const Declaration& declared, FunctionRef<ValueId(const Type&)> make) {
  switch (declared.kind) {
    case ItemKind::kTensor:
      return Item::Tensor(make(declared.type));
    case ItemKind::kTuple: {
      Items parts;
      for (const Declaration& d : declared.parts) {
        MSRT_ASSIGN_OR_RETURN(Item part, ItemOver(d, make));
        parts.push_back(std::move(part));
      }
      return Compound(ItemKind::kTuple, std::move(parts));
    }
    case ItemKind::kFunction:
      return Unsupported(
          "a function is the result of a function, which only a constant function may be");
    default:
      return Item::Plain(declared.kind);
  }
}

void AppendTypes(const Declaration& declared, std::vector<Type>* out) {
  if (declared.kind == ItemKind::kTensor) out->push_back(declared.type);
  for (const Declaration& d : declared.parts) AppendTypes(d, out);
}

std::string ShapeOf(const Declaration& declared) {
  if (declared.kind == ItemKind::kTensor) return "t";
  if (declared.kind != ItemKind::kTuple) return "";
  std::string shape = "(";
  for (const Declaration& d : declared.parts) shape += ShapeOf(d);
  return shape + ")";
}

std::string ShapeOf(const Item& item) {
  if (item.is(ItemKind::kTensor)) return "t";
  if (!item.is(ItemKind::kTuple)) return "";
  std::string shape = "(";
  for (const Item& p : *item.parts) shape += ShapeOf(p);
  return shape + ")";
}

Result<Declaration> Importer::ResultOf(const Item& callee, const Declaration& declared) const {
  if (declared.kind != ItemKind::kUnknown) return declared;
  const Item* function = &callee;
  while (function->is(ItemKind::kSwitch)) function = &function->parts->back();
  if (!function->is(ItemKind::kFunction))
    return Unsupported("the file does not say what the call of a function gives");
  const auto& outputs = file_.graphs()[function->index].proto->output();
  Declaration all;
  all.kind = ItemKind::kTuple;
  for (const auto& o : outputs) {
    MSRT_ASSIGN_OR_RETURN(Declaration one, DeclaredBy(o));
    all.parts.push_back(std::move(one));
  }
  Declaration result = all.parts.size() == 1 ? all.parts[0] : all;
  if (result.kind == ItemKind::kUnknown)
    return Unsupported("the file does not say what the call of a function gives");
  return result;
}

Result<Item> Importer::Call(const Item& callee, const Items& arguments, const Declaration& declared,
                            const std::string& name, Scope* scope) {
  if (callee.is(ItemKind::kUnknown)) return Assumed(declared, scope, name);
  passed_values_ += callee.items;
  for (const Item& a : arguments) passed_values_ += a.items;
  if (passed_values_ > kMaxPassedValues)
    return LimitExceeded("functions are handed more than ", kMaxPassedValues, " values");
  MSRT_ASSIGN_OR_RETURN(const Declaration result, ResultOf(callee, declared));
  switch (callee.kind) {
    case ItemKind::kFunction:
      return CallFunction(callee, arguments, result, name, scope);
    case ItemKind::kSwitch:
      return CallSwitch(callee, arguments, result, name, scope);
    default:
      return InvalidModel("calls ", Describe(callee));
  }
}

Status Importer::DeclareInputs(const Item& function, const Items& arguments,
                               Instance* instance) const {
  const FileGraph& graph = file_.graphs()[function.index];
  const size_t free = graph.free.size();
  size_t next = 0;
  for (size_t i = 0; i < function.part_count() + arguments.size(); ++i) {
    const Item& item =
        i < function.part_count() ? function.part(i) : arguments[i - function.part_count()];
    const bool captured = i < free;
    const std::string& name =
        captured ? graph.free[i] : graph.proto->input(static_cast<int>(i - free)).name();
    for (size_t leaf = 0; leaf < item.leaves; ++leaf) {
      instance->inputs[next + leaf].name =
          item.leaves == 1 ? ModelFile::Short(name) : StrCat(ModelFile::Short(name), ".", leaf);
    }
    if (captured) {
      next += item.leaves;
      continue;
    }
    auto declared = DeclaredBy(graph.proto->input(static_cast<int>(i - free)));
    if (!declared.ok() && declared.status().code() != Code::kUnsupported) {
      return std::move(declared).status().Within(StrCat("input '", name, "'"));
    }
    // A declaration that is not supported, such as a tuple of unknown length, may have an argument
    // that is.
    if (declared.ok()) DeclareLeaves(item, *declared, &instance->inputs, &next);
    else next += item.leaves;
  }
  return OkStatus();
}

Result<uint32_t> Importer::AddInstance(Instance instance) {
  Module& module = out_.module;
  if (module.graphs.size() >= options_.max_graphs) {
    return LimitExceeded(
        "functions, written out for each set of closures that they are handed, are more than ",
        options_.max_graphs);
  }
  instance.graph = static_cast<uint32_t>(module.graphs.size());
  module.graphs.emplace_back().name = instance.name;
  todo_.push_back(std::move(instance));
  return todo_.back().graph;
}

Result<uint32_t> Importer::InstanceFor(const Item& function, const Items& arguments,
                                       const Declaration& declared, Scope* scope) {
  std::string key;
  AppendShape(function, &key);
  for (const Item& a : arguments) AppendShape(a, &key);
  if (const auto known = instances_.find(key); known != instances_.end()) return known->second;
  Instance instance;
  const auto place = [&](const Item& item) {
    return Mapped(item, [&](const Item& leaf) {
      Item placed = leaf;
      placed.value = ValueId(static_cast<uint32_t>(instance.inputs.size()));
      instance.inputs.push_back({"", scope->draft.type(leaf.value)});
      return placed;
    });
  };
  instance.callee = place(function);
  for (const Item& a : arguments) instance.arguments.push_back(place(a));
  instance.whole = true;
  instance.result = declared;
  instance.name = file_.graphs()[function.index].proto->name();
  MSRT_RETURN_IF_ERROR(DeclareInputs(function, arguments, &instance));
  MSRT_ASSIGN_OR_RETURN(const uint32_t graph, AddInstance(std::move(instance)));
  instances_[std::move(key)] = graph;
  return graph;
}

Result<Item> Importer::CallFunction(const Item& function, const Items& arguments,
                                    const Declaration& declared, const std::string& name,
                                    Scope* scope) {
  const FileGraph& callee = file_.graphs()[function.index];
  const size_t given = function.part_count() - callee.free.size() + arguments.size();
  if (given != static_cast<size_t>(callee.proto->input_size())) {
    return InvalidModel("function '", callee.proto->name(), "' takes ", callee.proto->input_size(),
                        " arguments, gets ", given);
  }
  MSRT_ASSIGN_OR_RETURN(const Item ready, scope->draft.Materialized(function, name));
  Items all{ready}, ready_arguments;
  for (const Item& a : arguments) {
    MSRT_ASSIGN_OR_RETURN(Item argument, scope->draft.Materialized(a, name));
    ready_arguments.push_back(argument);
    all.push_back(std::move(argument));
  }
  MSRT_ASSIGN_OR_RETURN(const uint32_t graph, InstanceFor(ready, ready_arguments, declared, scope));
  std::vector<Type> types;
  AppendTypes(declared, &types);
  const size_t count = types.size();
  MSRT_ASSIGN_OR_RETURN(
      const std::vector<ValueId> values,
      scope->draft.AddMany("msrt", "Call", name, LeavesOf(all), {{"graph", GraphRef{graph}}}, count,
                           std::move(types)));
  size_t next = 0;
  return ItemOver(declared, [&](const Type&) { return values[next++]; });
}

Result<ValueId> Importer::ChosenIndex(const Item& selector, size_t count, const std::string& name,
                                      Scope* scope) {
  GraphDraft& draft = scope->draft;
  MSRT_ASSIGN_OR_RETURN(const ValueId index, draft.Materialize(selector, name));
  const DType dtype = draft.type(index).dtype;
  if (!kIndexTypes.Has(dtype))
    return Unsupported("chooses by a ", dtype, ", must be an i32 or i64");
  // A negative index counts from the end.
  const ValueId zero = draft.Number(name + "/zero", dtype, 0),
                all = draft.Number(name + "/count", dtype, static_cast<double>(count));
  MSRT_ASSIGN_OR_RETURN(const ValueId negative,
                        draft.Add("Less", name + "/negative", {index, zero}));
  MSRT_ASSIGN_OR_RETURN(const ValueId shifted, draft.Add("Add", name + "/from_end", {index, all}));
  return draft.Add("Where", name + "/index", {negative, shifted, index});
}

Result<Item> Importer::CallSwitch(const Item& choice, const Items& arguments,
                                  const Declaration& declared, const std::string& name,
                                  Scope* scope) {
  const Item& selector = choice.part(0);
  const size_t count = choice.part_count() - 1;
  PassedValues captured;
  std::vector<GraphRef> branches;
  for (size_t b = 1; b <= count; ++b) {
    Instance branch;
    branch.callee = choice.part(b);
    if (!branch.callee.is(ItemKind::kFunction) && !branch.callee.is(ItemKind::kSwitch)) {
      return InvalidModel("branch ", b - 1, " is ", Describe(branch.callee),
                          ", must be a function");
    }
    branch.arguments = arguments;
    branch.result = declared;
    branch.whole = branch.callee.is(ItemKind::kFunction) &&
                   file_.graphs()[branch.callee.index].references == 1;
    branch.name = branch.callee.is(ItemKind::kFunction)
                      ? file_.graphs()[branch.callee.index].proto->name()
                      : name;
    branch.callee = captured.Put(branch.callee, scope->draft);
    for (Item& a : branch.arguments) a = captured.Put(a, scope->draft);
    MSRT_ASSIGN_OR_RETURN(const uint32_t graph, AddInstance(std::move(branch)));
    branches.push_back({graph});
  }
  // Each branch gets the captures of all of them.
  for (size_t b = 0; b < count; ++b) {
    auto& inputs = todo_[todo_.size() - count + b].inputs;
    for (ValueId v : captured.values)
      inputs.push_back({scope->draft.graph().value(v).name, scope->draft.type(v)});
  }
  ValueId chooser;
  AttrList attrs;
  if (choice.by_index) {
    MSRT_ASSIGN_OR_RETURN(chooser, ChosenIndex(selector, count, name, scope));
    attrs.Set("branches", branches);
  } else {
    MSRT_ASSIGN_OR_RETURN(chooser, scope->draft.Materialize(selector, name));
    if (scope->draft.type(chooser).dtype != DType::kBool) {
      MSRT_ASSIGN_OR_RETURN(chooser, scope->draft.Add("Cast", name + "/condition", {chooser},
                                                      {{"to", DType::kBool}}));
    }
    attrs.Set("then_branch", branches[0]);
    attrs.Set("else_branch", branches[1]);
  }
  std::vector<Type> types;
  AppendTypes(declared, &types);
  const size_t results = types.size();
  std::vector<ValueId> operands{chooser};
  operands.insert(operands.end(), captured.values.begin(), captured.values.end());
  MSRT_ASSIGN_OR_RETURN(
      const std::vector<ValueId> values,
      scope->draft.AddMany(choice.by_index ? "msrt" : "", choice.by_index ? "SwitchN" : "If", name,
                           std::move(operands), std::move(attrs), results, std::move(types)));
  size_t next = 0;
  return ItemOver(declared, [&](const Type&) { return values[next++]; });
}

}  // namespace msrt::mindir_import
