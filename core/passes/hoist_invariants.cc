#include "core/passes/hoist_invariants.h"

#include <algorithm>

#include "core/passes/call_graph.h"
#include "core/passes/graph_edit.h"
#include "core/passes/loop_shape.h"

namespace msrt {
namespace {

// Ops, besides elementwise ones, that succeed on any data if their types are concrete. Others may
// depend on numbers in their data (an index, a length) that are invalid if the loop does not run.
constexpr std::string_view kNeverFail[] = {
    "Clip",       "Concat",     "Conv",      "Flatten",         "Gemm",      "LayerNormalization",
    "LogSoftmax", "MatMul",     "ReduceL1",  "ReduceL2",        "ReduceMax", "ReduceMean",
    "ReduceMin",  "ReduceProd", "ReduceSum", "ReduceSumSquare", "Reshape",   "RMSNormalization",
    "Shape",      "Size",       "Softmax",   "Split",           "Squeeze",   "Transpose",
    "Unsqueeze",  "Where"};
// Elementwise ops that fail on an integer zero.
constexpr std::string_view kDivisions[] = {"Div", "Mod"};

template <typename Names>
bool IsOneOf(const Node& node, const Names& names) {
  return node.domain.empty() &&
         std::find(std::begin(names), std::end(names), node.op) != std::end(names);
}

bool NeverFails(const Graph& graph, const Node& node) {
  const bool elementwise = (node.def->traits & kElementwise) != 0;
  if (IsOneOf(node, kDivisions) || (!elementwise && !IsOneOf(node, kNeverFail))) return false;
  if (elementwise && node.inputs.size() == 1) return true;  // valid for any dims
  const auto concrete = [&](ValueId v) { return v == kNoValue || graph.value(v).type.concrete(); };
  return std::all_of(node.inputs.begin(), node.inputs.end(), concrete) &&
         std::all_of(node.outputs.begin(), node.outputs.end(), concrete);
}

// Moves invariant nodes out of a graph of a loop.
class Hoisting {
 public:
  // `always_runs`: the graph runs at least once.
  Hoisting(Graph* graph, bool always_runs, GraphEdit* outside)
      : graph_(*graph),
        always_runs_(always_runs),
        outside_(*outside),
        outer_(graph->value_count(), kNoValue) {}

  // Input i of the graph is the same in each iteration: it is value `outside` of the outer graph.
  void MarkInvariant(size_t i, ValueId outside) {
    const Type& given = outside_.graph().value(outside).type;
    const auto merged = MergeTypes(given, graph_.value(graph_.inputs[i]).type);
    // The call checks its arguments; a node that moves before it must not rely on that check.
    if (merged.ok() && *merged == given) outer_[IndexOf(graph_.inputs[i])] = outside;
  }

  // Moves nodes. Returns pairs of the inner and outer values that the graph still needs of moved
  // nodes.
  std::vector<std::pair<ValueId, ValueId>> MoveNodes() {
    std::vector<bool> moved(graph_.value_count());
    std::erase_if(graph_.nodes, [&](const Node& node) {
      if (!CanMove(node)) return false;
      for (ValueId v : node.outputs) {
        if (v != kNoValue) moved[IndexOf(v)] = true;
      }
      MoveOut(node);
      return true;
    });
    std::vector<std::pair<ValueId, ValueId>> needed;
    const std::vector<uint32_t> uses = graph_.UseCounts();
    for (uint32_t v = 0; v < moved.size(); ++v) {
      if (moved[v] && uses[v] != 0) needed.emplace_back(ValueId(v), outer_[v]);
    }
    return needed;
  }

 private:
  bool CanMove(const Node& node) const {
    if (!IsPure(node) || (node.def->traits & kRunByExecutor) != 0) return false;
    bool varies = false, captured = false;
    for (ValueId v : node.inputs) {
      if (v == kNoValue) continue;
      const bool invariant = outer_[IndexOf(v)] != kNoValue && graph_.value(v).constant == nullptr;
      captured = captured || invariant;
      varies = varies || (!invariant && graph_.value(v).constant == nullptr);
    }
    return captured && !varies && (always_runs_ || NeverFails(graph_, node));
  }

  void MoveOut(Node node) {
    for (ValueId& v : node.inputs) {
      if (v != kNoValue) v = Outside(v);
    }
    for (ValueId& v : node.outputs) {
      if (v != kNoValue) v = Outside(v);
    }
    outside_.Keep(std::move(node));
  }

  ValueId Outside(ValueId v) {
    ValueId& outer = outer_[IndexOf(v)];
    if (outer != kNoValue) return outer;
    outer = outside_.graph().AddValue(graph_.value(v).name, graph_.value(v).type);
    outside_.graph().value(outer).constant = graph_.value(v).constant;
    return outer;
  }

  Graph& graph_;
  const bool always_runs_;
  GraphEdit& outside_;
  std::vector<ValueId> outer_;  // by value: the same value in the outer graph
};

class Loops {
 public:
  explicit Loops(Module* module) : module_(*module), calls_(*module) {}

  bool Run() {
    bool changed = false;
    // Inner loops first: a node that leaves one loop may leave the next.
    for (uint32_t g : calls_.callees_first()) changed = InGraph(g) || changed;
    return changed;
  }

 private:
  bool InGraph(uint32_t g) {
    const Graph& graph = module_.graphs[g];
    return EditControl(
        &module_, g, [&](uint32_t n, Node& node, const ControlShape& shape, GraphEdit& edit) {
          if (!IsLoop(shape) || !calls_.OwnsGraphs(g, n, shape)) return EditResult::kUnchanged;
          const LoopGraphs loop = GraphsOf(&module_, shape);
          bool changed = CaptureUnchanged(shape, loop, &node, &edit);
          if (loop.condition != nullptr)
            changed = Hoist(loop.condition, 0, true, shape, loop, &node, &edit) || changed;
          changed = Hoist(loop.body, shape.body_extra_inputs(), RunsAtLeastOnce(graph, node, shape),
                          shape, loop, &node, &edit) ||
                    changed;
          return changed ? EditResult::kChanged : EditResult::kUnchanged;
        });
  }

  // Adds a captured value to the graphs of a loop. Returns its input in `graph`, one of them.
  static ValueId AddCapture(const LoopGraphs& loop, Graph* graph, const Type& type, ValueId outside,
                            Node* node) {
    ValueId inside = kNoValue;
    for (Graph* g : {loop.condition, loop.body}) {
      if (g == nullptr) continue;
      const ValueId input = g->AddInput("", type);
      if (g == graph) inside = input;
    }
    node->inputs.push_back(outside);
    return inside;
  }

  static bool CaptureUnchanged(const ControlShape& shape, const LoopGraphs& loop, Node* node,
                               GraphEdit* edit) {
    bool changed = false;
    for (size_t i = 0; i < shape.carried; ++i) {
      const ValueId begin = loop.body->inputs[shape.body_extra_inputs() + i];
      if (loop.body->outputs[shape.body_extra_outputs() + i] != begin) continue;
      const ValueId outside = node->inputs[shape.leading + i];
      const ValueId inside =
          AddCapture(loop, loop.body, loop.body->value(begin).type, outside, node);
      loop.body->ReplaceUses(begin, inside);
      if (loop.condition != nullptr)
        loop.condition->ReplaceUses(loop.condition->inputs[i], loop.condition->inputs.back());
      if (i < node->outputs.size()) edit->ReplaceOutput(node->outputs[i], outside);
      changed = true;
    }
    return changed;
  }

  static bool Hoist(Graph* graph, size_t extra_inputs, bool always_runs, const ControlShape& shape,
                    const LoopGraphs& loop, Node* node, GraphEdit* edit) {
    Hoisting hoisting(graph, always_runs, edit);
    const size_t before = edit->appended();
    for (size_t i = shape.captured_from(); i < node->inputs.size(); ++i)
      hoisting.MarkInvariant(i - shape.leading + extra_inputs, node->inputs[i]);
    for (const auto& [inside, outside] : hoisting.MoveNodes()) {
      const Type type = graph->value(inside).type;
      graph->ReplaceUses(inside, AddCapture(loop, graph, type, outside, node));
    }
    return edit->appended() != before;
  }

  static bool RunsAtLeastOnce(const Graph& graph, const Node& node, const ControlShape& shape) {
    if (shape.kind == ControlKind::kScan) return ScanLength(graph, node, shape) > 0;
    if (shape.kind != ControlKind::kLoop) return false;
    const auto holds = [&](size_t i, auto test) {
      const auto number = ConstantNumber(graph, node.inputs[i]);
      return node.inputs[i] == kNoValue || (number && test(*number));
    };
    return holds(0, [](int64_t trips) { return trips > 0; }) &&
           holds(1, [](int64_t condition) { return condition != 0; });
  }

  Module& module_;
  const CallGraph calls_;
};

}  // namespace

Result<bool> HoistInvariants(const PassContext&, Module* module) {
  const bool removed = RemoveUncalledGraphs(module);
  return Loops(module).Run() || removed;
}

}  // namespace msrt
