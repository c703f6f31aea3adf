#include "core/passes/fold_control.h"

#include <algorithm>

#include "core/graph/constants.h"
#include "core/passes/call_graph.h"
#include "core/passes/fold_constants.h"
#include "core/passes/graph_edit.h"
#include "core/passes/loop_shape.h"
#include "core/passes/same_graph.h"
#include "ops/registry.h"
#include "ops/validate.h"

namespace msrt {
namespace {

// Larger conditions are not evaluated for the initial values of a loop.
constexpr size_t kMaxConditionNodes = 32;

class Folding {
 public:
  Folding(const PassContext& context, Module* module)
      : context_(context), module_(*module), calls_(*module) {}

  bool Run() {
    bool changed = false;
    // Callers first: an argument may have become constant just before.
    for (size_t i = calls_.callees_first().size(); i-- > 0;)
      changed = AroundGraph(calls_.callees_first()[i]) || changed;
    for (uint32_t g : calls_.callees_first()) changed = InGraph(g) || changed;
    return changed;
  }
  bool RunIn(uint32_t g) {
    const bool changed = AroundGraph(g);
    return InGraph(g) || changed;
  }

 private:
  // Returns the constant that all callers pass to input i, or null. A recursive call that passes
  // the input on unchanged does not count.
  const ConstTensor* ConstantFromCallers(uint32_t g, size_t i) const {
    const ConstTensor* constant_input = nullptr;
    for (const CallSite& site : calls_.sites(g)) {
      const Graph& caller = module_.graphs[site.graph];
      const Node& node = caller.nodes[site.node];
      const ControlShape shape = ShapeOfControl(node);
      const size_t position = i + InputOffset(shape);
      if (position < shape.captured_from()) return nullptr;
      const ValueId value = node.inputs[position];
      if (site.graph == g && value == module_.graphs[g].inputs[i]) continue;
      const ConstTensor* constant = caller.value(value).constant.get();
      if (constant == nullptr ||
          (constant_input != nullptr && !SameConstant(*constant_input, *constant)))
        return nullptr;
      constant_input = constant;
    }
    return constant_input;
  }

  bool SetInput(Graph* graph, size_t i, const ConstTensor& data,
                const std::vector<uint32_t>& uses) {
    const ValueId input = graph->inputs[i];
    if (uses[IndexOf(input)] == 0 || !MergeTypes(graph->value(input).type, data.type()).ok())
      return false;
    graph->ReplaceUses(input, graph->AddConstant(graph->value(input).name, data));
    return true;
  }

  bool TakeConstants(uint32_t g) {
    if (calls_.has_fixed_signature(g)) return false;
    Graph& graph = module_.graphs[g];
    const std::vector<uint32_t> uses = graph.UseCounts();
    bool changed = false;
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      const ConstTensor* constant_input = ConstantFromCallers(g, i);
      if (constant_input != nullptr)
        changed = SetInput(&graph, i, *constant_input, uses) || changed;
    }
    return changed;
  }

  bool AroundGraph(uint32_t g) {
    const bool changed = TakeConstants(g);
    return SetTrueCondition(g) || changed;
  }

  // Sets the condition that a Loop passes to its body to true: the body runs only while it holds.
  bool SetTrueCondition(uint32_t g) {
    Graph& graph = module_.graphs[g];
    const auto by_loop = [&](const CallSite& s) {
      return ShapeOfControl(module_.graphs[s.graph].nodes[s.node]).kind == ControlKind::kLoop;
    };
    if (calls_.has_fixed_signature(g) ||
        !std::all_of(calls_.sites(g).begin(), calls_.sites(g).end(), by_loop))
      return false;
    const Type& type = graph.value(graph.inputs[1]).type;
    if (!type.concrete() || type.elements() != 1) return false;
    const uint8_t yes = 1;
    return SetInput(&graph, 1,
                    ConstTensor::Of<uint8_t>(DType::kBool, type.dims, std::span(&yes, 1)),
                    graph.UseCounts());
  }

  bool InGraph(uint32_t g) {
    const Graph& graph = module_.graphs[g];
    return EditControl(
        &module_, g, [&](uint32_t, Node& node, const ControlShape& shape, GraphEdit& edit) {
          if (NeverBegins(graph, node, shape) && ReplaceByInitialValues(node, shape, &edit))
            return EditResult::kReplaced;
          const auto branch = TakenBranch(graph, node, shape);
          return branch && CallInstead(graph, *branch, &node) ? EditResult::kChanged
                                                              : EditResult::kUnchanged;
        });
  }

  // Returns the branch that is taken whenever the node runs, if it is known.
  std::optional<uint32_t> TakenBranch(const Graph& graph, const Node& node,
                                      const ControlShape& shape) const {
    if (shape.kind != ControlKind::kIf && shape.kind != ControlKind::kSwitch) return std::nullopt;
    const auto count = static_cast<int64_t>(shape.graphs.size());
    const auto number = ConstantNumber(graph, node.inputs[0]);
    if (shape.kind == ControlKind::kSwitch) {
      if (!number || *number < -count || *number >= count) return std::nullopt;
      return shape.graphs[static_cast<size_t>(*number < 0 ? *number + count : *number)];
    }
    if (number) return shape.graphs[*number != 0 ? 0 : 1];
    const Type& condition = graph.value(node.inputs[0]).type;
    const bool runs = condition.concrete() && condition.elements() == 1;
    if (runs && SameGraph(module_.graphs[shape.graphs[0]], module_.graphs[shape.graphs[1]]))
      return shape.graphs[0];
    return std::nullopt;
  }

  bool CallInstead(const Graph& graph, uint32_t branch, Node* node) const {
    const Graph& callee = module_.graphs[branch];
    for (size_t i = 0; i < node->outputs.size(); ++i) {
      if (node->outputs[i] == kNoValue) continue;
      // The declared types of the results may not hold for this branch.
      if (!MergeTypes(graph.value(node->outputs[i]).type, callee.value(callee.outputs[i]).type)
               .ok())
        return false;
    }
    node->domain = "msrt";
    node->op = "Call";
    node->version = 0;
    node->def = FindOp(node->domain, node->op);
    node->attrs = {{"graph", GraphRef{branch}}};
    node->inputs.erase(node->inputs.begin());
    return true;
  }

  bool NeverBegins(const Graph& graph, const Node& node, const ControlShape& shape) const {
    switch (shape.kind) {
      case ControlKind::kLoop: {
        const auto trips = ConstantNumber(graph, node.inputs[0]),
                   condition = ConstantNumber(graph, node.inputs[1]);
        return (trips && *trips <= 0) || (condition && *condition == 0);
      }
      case ControlKind::kScan:
        return ScanLength(graph, node, shape) == 0;
      case ControlKind::kWhile:
        // The condition runs once even if it is false, so it must be pure.
        return calls_.pure(shape.graphs[0]) &&
               BeginsFalse(graph, node, module_.graphs[shape.graphs[0]]);
      default:
        return false;
    }
  }

  // Whether the condition of a While is false for its initial values, as far as these are constant.
  bool BeginsFalse(const Graph& graph, const Node& node, const Graph& condition) const {
    if (condition.nodes.size() > kMaxConditionNodes) return false;
    Graph trial;
    std::vector<ValueId> arguments;
    for (ValueId v : node.inputs) {
      arguments.push_back(trial.AddValue("", graph.value(v).type));
      trial.value(arguments.back()).constant = graph.value(v).constant;
    }
    {
      GraphEdit edit(&trial, false);
      const auto results = edit.Inline(condition, arguments);
      if (!results) return false;
      trial.outputs = *results;
    }
    if (!FoldConstants(context_, &trial).ok()) return false;
    const auto number = ConstantNumber(trial, trial.outputs[0]);
    return number && *number == 0;
  }

  // Replaces a loop that never begins by its results: the initial carried values, and empty scanned
  // results.
  bool ReplaceByInitialValues(const Node& node, const ControlShape& shape, GraphEdit* edit) const {
    std::vector<ValueId> results;
    const Graph& body = module_.graphs[shape.graphs.back()];
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (i < shape.carried) {
        results.push_back(node.inputs[shape.leading + i]);
        continue;
      }
      if (node.outputs[i] == kNoValue) {
        results.push_back(kNoValue);
        continue;
      }
      // The run takes the dims from the types that the body declares, so they must be concrete.
      Type slice = body.value(body.outputs[shape.body_extra_outputs() + i]).type;
      if (!slice.concrete() || shape.kind == ControlKind::kScan) return false;
      slice.dims.insert(0, 0);
      auto empty = MakeConstant(slice.dtype, slice.dims);
      if (!empty.ok()) return false;
      results.push_back(edit->graph().AddConstant(edit->graph().value(node.outputs[i]).name,
                                                  std::move(empty->tensor)));
    }
    return edit->Replace(node, results);
  }

  const PassContext& context_;
  Module& module_;
  const CallGraph calls_;
};

size_t NodesOf(const Module& module) {
  size_t nodes = 0;
  for (const Graph& graph : module.graphs) nodes += graph.nodes.size();
  return nodes;
}

// Folding may show that a graph cannot run with the known shapes. That is an error of a run that
// reaches the graph, not of the model, so such graphs are left unfolded.
bool FoldGraphsThatStayValid(const PassContext& context, Module* module) {
  constexpr size_t kMaxWork =
      1'000'000;  // nodes visited; each trial copies and validates the module
  if (module->graphs.size() * NodesOf(*module) > kMaxWork) return false;
  bool changed = false;
  const std::vector<uint32_t> order = CallGraph(*module).callees_first();
  for (uint32_t g : order) {
    Module trial = *module;
    if (!Folding(context, &trial).RunIn(g) || !Validate(&trial, context.ops).ok()) continue;
    *module = std::move(trial);
    changed = true;
  }
  return changed;
}

}  // namespace

Result<bool> FoldControl(const PassContext& context, Module* module) {
  const bool any =
      std::any_of(module->graphs.begin(), module->graphs.end(), [](const Graph& graph) {
        return std::any_of(graph.nodes.begin(), graph.nodes.end(), IsControl);
      });
  if (!any) return false;
  const Module before = *module;
  if (!Folding(context, module).Run()) return false;
  Module checked = *module;
  if (Validate(&checked, context.ops).ok()) return true;
  *module = before;
  return FoldGraphsThatStayValid(context, module);
}

}  // namespace msrt
