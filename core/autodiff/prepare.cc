#include "core/autodiff/prepare.h"

#include <algorithm>

#include "core/passes/call_graph.h"
#include "core/passes/inline_calls.h"
#include "core/passes/thread_steps.h"
#include "ops/registry.h"
#include "ops/validate.h"

namespace msrt {
namespace {

bool HasFunctions(const Module& module) {
  return std::any_of(module.graphs.begin(), module.graphs.end(), [](const Graph& graph) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
      return IsControl(node) && ShapeOfControl(node).kind == ControlKind::kPartial;
    });
  });
}

// One slot at a time: there are as many walks as parameters that called graphs read.
class StateReading {
 public:
  StateReading(Module* module, uint32_t root, uint32_t slot)
      : module_(*module), root_(root), slot_(slot), needs_(module->graphs.size()) {}

  Result<ValueId> Run() {
    MSRT_RETURN_IF_ERROR(FindReaders());
    const ValueId read = ReadInRoot();
    for (uint32_t g = 0; g < needs_.size(); ++g) {
      if (!needs_[g]) continue;
      Graph& graph = module_.graphs[g];
      const ValueId value = g == root_ ? read : graph.AddValue("", module_.states[slot_].type);
      if (g != root_) graph.inputs.push_back(value);
      std::vector<ValueId> replaced;
      std::erase_if(graph.nodes, [&](const Node& node) {
        if (!Reads(node) || node.outputs[0] == value) return false;
        replaced.push_back(node.outputs[0]);
        return true;
      });
      for (ValueId v : replaced) graph.ReplaceUses(v, value);
      for (Node& node : graph.nodes) {
        if (PassesValue(node)) node.inputs.push_back(value);
      }
    }
    return read;
  }

 private:
  bool Is(const Node& node, std::string_view op) const {
    return node.domain == "msrt" && node.op == op &&
           std::get<int64_t>(*node.attrs.Find("slot")) == static_cast<int64_t>(slot_);
  }
  bool Reads(const Node& node) const { return Is(node, "StateRead"); }
  bool PassesValue(const Node& node) const {
    const std::vector<uint32_t> callees = GraphsNamedBy(node);
    return std::any_of(callees.begin(), callees.end(), [&](uint32_t c) { return needs_[c]; });
  }

  // Marks the graphs that need the value: those that read it, those that call one of them, and
  // those that are called in place of one of them.
  Status FindReaders() {
    std::vector<bool> reached(module_.graphs.size());
    std::vector<uint32_t> order = {root_};
    reached[root_] = true;
    needs_[root_] = true;
    for (size_t i = 0; i < order.size(); ++i) {
      for (const Node& node : module_.graphs[order[i]].nodes) {
        if (Reads(node)) needs_[order[i]] = true;
        if (Is(node, "StateWrite")) {
          return Unsupported("state '", module_.states[slot_].name, "' is written in graph '",
                             module_.graphs[order[i]].name,
                             "', so that its reads may differ: write it after the gradients");
        }
        for (uint32_t callee : GraphsNamedBy(node)) {
          if (!reached[callee]) order.push_back(callee);
          reached[callee] = true;
        }
      }
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t g : order) {
        for (const Node& node : module_.graphs[g].nodes) {
          if (!PassesValue(node)) continue;
          changed = changed || !needs_[g];
          needs_[g] = true;
          for (uint32_t c : GraphsNamedBy(node)) {
            changed = changed || !needs_[c];
            needs_[c] = true;
          }
        }
      }
    }
    return CheckSignatures();
  }

  Status CheckSignatures() const {
    const CallGraph calls(module_);
    for (uint32_t g = 0; g < needs_.size(); ++g) {
      const bool called = g != root_ || !calls.sites(g).empty();
      if (!needs_[g] || !called || !calls.has_fixed_signature(g)) continue;
      return Unsupported("graph '", module_.graphs[g].name, "' reads state '",
                         module_.states[slot_].name,
                         "' and is an entry or called through a function, so that its inputs "
                         "cannot change: pass the value to it");
    }
    return OkStatus();
  }

  ValueId ReadInRoot() {
    Graph& graph = module_.graphs[root_];
    const StateSlot& slot = module_.states[slot_];
    std::vector<int64_t> dims;
    for (int64_t d : slot.type.dims) dims.push_back(IsKnown(d) ? d : -1);
    Node read;
    read.name = slot.name;
    read.domain = "msrt";
    read.op = "StateRead";
    read.def = FindOp("msrt", "StateRead", nullptr);
    read.version = read.def->version;
    read.attrs = {{"slot", static_cast<int64_t>(slot_)},
                  {"dtype", slot.type.dtype},
                  {"dims", std::move(dims)}};
    read.outputs = {graph.AddValue(slot.name, slot.type)};
    const ValueId value = read.outputs[0];
    graph.nodes.insert(graph.nodes.begin(), std::move(read));
    return value;
  }

  Module& module_;
  const uint32_t root_, slot_;
  std::vector<bool> needs_;  // by graph
};

}  // namespace

Status PrepareForGradients(Module* module, const OpSet* ops) {
  MSRT_RETURN_IF_ERROR(ThreadSteps(module));
  MSRT_RETURN_IF_ERROR(Validate(module, ops));
  return ResolveFunctionsForGradients(module, ops);
}

Status ResolveFunctionsForGradients(Module* module, const OpSet* ops) {
  CopyBudget copying;
  constexpr int kMaxRounds = 16;
  for (int round = 0; HasFunctions(*module) && round < kMaxRounds; ++round) {
    MSRT_ASSIGN_OR_RETURN(const bool changed,
                          InlineCalls({.ops = ops, .copying = &copying}, module));
    if (!changed) break;
    MSRT_RETURN_IF_ERROR(Validate(module, ops));
  }
  return OkStatus();
}

Result<std::vector<ValueId>> ReadStateOnce(Module* module, uint32_t graph,
                                           const std::vector<uint32_t>& slots, const OpSet* ops) {
  std::vector<ValueId> values;
  for (uint32_t slot : slots) {
    if (slot >= module->states.size()) {
      return InvalidArgument("there is no state ", slot, ", the module has ",
                             module->states.size());
    }
    MSRT_ASSIGN_OR_RETURN(const ValueId value, StateReading(module, graph, slot).Run());
    values.push_back(value);
  }
  MSRT_RETURN_IF_ERROR(Validate(module, ops));
  return values;
}

}  // namespace msrt
