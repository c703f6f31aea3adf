#include "core/train/inner_parameters.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/autodiff/prepare.h"
#include "core/passes/call_graph.h"
#include "core/train/optimizer_node.h"
#include "ops/registry.h"
#include "ops/streams.h"
#include "ops/validate.h"

namespace msrt {
namespace {

constexpr size_t kNormScale = 1;

bool HasFunctions(const Module& module) {
  return std::any_of(module.graphs.begin(), module.graphs.end(), [](const Graph& graph) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
      return IsControl(node) && ShapeOfControl(node).kind == ControlKind::kPartial;
    });
  });
}

// Functions without calls would keep the inputs of their graphs from changing.
void DropUnusedFunctions(Graph* graph) {
  std::set<ValueId> used(graph->outputs.begin(), graph->outputs.end());
  for (const Node& node : graph->nodes) used.insert(node.inputs.begin(), node.inputs.end());
  std::erase_if(graph->nodes, [&](const Node& node) {
    return IsControl(node) && ShapeOfControl(node).kind == ControlKind::kPartial &&
           used.count(node.outputs[0]) == 0;
  });
  graph->CompactValues();
}

// A function that was called twice is now in the graph twice, but its weights stay one.
void MergeCopies(Graph* graph) {
  std::map<const std::byte*, ValueId> first;
  for (uint32_t v = 0; v < graph->value_count(); ++v) {
    const auto& constant = graph->value(ValueId{v}).constant;
    if (constant == nullptr || constant->bytes.empty()) continue;
    const auto [found, is_new] = first.emplace(constant->bytes.data(), ValueId{v});
    const auto& other = graph->value(found->second).constant;
    if (!is_new && other->type() == constant->type()) graph->ReplaceUses(ValueId{v}, found->second);
  }
}

// The inputs of called graphs that get a value which the node passes on.
std::vector<std::pair<uint32_t, ValueId>> PassedOn(const Module& module, const Node& node,
                                                   ValueId value) {
  std::vector<std::pair<uint32_t, ValueId>> passed;
  if (!IsControl(node)) return passed;
  const ControlShape shape = ShapeOfControl(node);
  for (size_t i = shape.captured_from(); i < node.inputs.size(); ++i) {
    if (node.inputs[i] != value) continue;
    const size_t position = shape.body_extra_inputs() + i - shape.leading;
    for (uint32_t g : shape.graphs) {
      if (position < module.graphs[g].inputs.size())
        passed.emplace_back(g, module.graphs[g].inputs[position]);
    }
  }
  return passed;
}

// Moves by way of state slots: ReadStateOnce passes the values of slots to the graphs that read
// them.
class Mover {
 public:
  Mover(Module* module, const OpSet* ops)
      : module_(*module), ops_(ops), main_(module->entries[0]), own_slots_(module->states.size()) {}

  Result<std::vector<ValueId>> Run() {
    MSRT_RETURN_IF_ERROR(CheckRandom());
    const CallGraph calls(module_);
    const WeightInputs inputs = FindWeightInputs(module_);
    for (uint32_t g = 0; g < module_.graphs.size(); ++g) {
      if (g != main_ && calls.reachable(g)) MakeSlots(g, inputs);
    }
    if (!slots_.empty()) {
      MSRT_RETURN_IF_ERROR(Validate(&module_, ops_));
      MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> reads,
                            ReadStateOnce(&module_, main_, slots_, ops_));
      MakeConstants(reads);
      MSRT_RETURN_IF_ERROR(Validate(&module_, ops_));
    }
    return FindWeights(module_.graphs[main_], FindWeightInputs(module_));
  }

 private:
  // A gradient computes a called graph again, and would draw other numbers.
  Status CheckRandom() const {
    const CallGraph calls(module_);
    for (uint32_t g = 0; g < module_.graphs.size(); ++g) {
      if (g == main_ || !calls.reachable(g)) continue;
      for (const Node& node : module_.graphs[g].nodes) {
        const bool drops = node.domain.empty() && node.op == "Dropout";
        if (!drops && !DrawsNumbers(node)) continue;
        return Unsupported("node '", node.name, "' (", node.op, ") in graph '",
                           module_.graphs[g].name,
                           "' draws random numbers inside control flow, which cannot be trained: "
                           "move it to the main graph, or remove it");
      }
    }
    return OkStatus();
  }

  void MakeSlots(uint32_t g, const WeightInputs& inputs) {
    Graph& graph = module_.graphs[g];
    std::vector<Node> reads;
    for (const ValueId v : FindWeights(graph, inputs)) {
      const ConstTensor constant = *graph.value(v).constant;
      const auto slot = AddSlot(&module_, graph.value(v).name, constant, StateRole::kParameter);
      Node& read = reads.emplace_back();
      read.name = graph.value(v).name;
      read.domain = "msrt";
      read.op = "StateRead";
      read.def = FindOp(read.domain, read.op, nullptr);
      read.version = read.def->version;
      read.attrs = {{"slot", slot},
                    {"dtype", constant.dtype},
                    {"dims", std::vector<int64_t>(constant.dims.begin(), constant.dims.end())}};
      read.outputs = {graph.AddValue(read.name, constant.type())};
      graph.ReplaceUses(v, read.outputs[0]);
      slots_.push_back(static_cast<uint32_t>(slot));
    }
    graph.nodes.insert(graph.nodes.begin(), std::make_move_iterator(reads.begin()),
                       std::make_move_iterator(reads.end()));
    graph.CompactValues();
  }

  void MakeConstants(const std::vector<ValueId>& reads) {
    Graph& graph = module_.graphs[main_];
    for (size_t i = 0; i < reads.size(); ++i) {
      const StateSlot& slot = module_.states[slots_[i]];
      const ValueId constant = graph.AddConstant(slot.name, slot.initial);
      std::erase_if(graph.nodes, [&](const Node& node) {
        return node.outputs.size() == 1 && node.outputs[0] == reads[i];
      });
      graph.ReplaceUses(reads[i], constant);
    }
    module_.states.erase(module_.states.begin() + static_cast<ptrdiff_t>(own_slots_),
                         module_.states.end());
  }

  Module& module_;
  const OpSet* const ops_;
  const uint32_t main_;
  const size_t own_slots_;       // those that the model has
  std::vector<uint32_t> slots_;  // one for each weight that moves
};

}  // namespace

Result<std::vector<ValueId>> MoveInnerParameters(Module* module, const OpSet* ops) {
  if (HasFunctions(*module)) {
    MSRT_RETURN_IF_ERROR(ResolveFunctionsForGradients(module, ops));
    for (Graph& graph : module->graphs) {
      DropUnusedFunctions(&graph);
      MergeCopies(&graph);
    }
    MSRT_RETURN_IF_ERROR(Validate(module, ops));
  }
  return Mover(module, ops).Run();
}

Status CheckInnerNorms(const Module& module, const std::vector<Parameter>& parameters) {
  for (const Parameter& p : parameters) {
    std::set<std::pair<uint32_t, ValueId>> reached{{module.entries[0], p.constant}};
    std::vector<std::pair<uint32_t, ValueId>> waiting(reached.begin(), reached.end());
    while (!waiting.empty()) {
      const auto [g, value] = waiting.back();
      waiting.pop_back();
      for (const Node& node : module.graphs[g].nodes) {
        if (g != module.entries[0] && node.domain.empty() && node.op == "BatchNormalization" &&
            node.inputs[kNormScale] == value) {
          return Unsupported("node '", node.name, "' (BatchNormalization) in graph '",
                             module.graphs[g].name,
                             "' is inside control flow, where it keeps its statistics: freeze '",
                             p.name, "', or move the node to the main graph");
        }
        for (const auto& passed : PassedOn(module, node, value)) {
          if (reached.insert(passed).second) waiting.push_back(passed);
        }
      }
    }
  }
  return OkStatus();
}

}  // namespace msrt
