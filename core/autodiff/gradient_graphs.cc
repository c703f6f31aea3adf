#include "core/autodiff/gradient_graphs.h"

#include <algorithm>

#include "core/passes/call_graph.h"
#include "ops/control.h"
#include "ops/streams.h"

namespace msrt {
namespace {

bool IsStateOp(const Node& node, std::string_view op) {
  return node.domain == "msrt" && node.op == op;
}

size_t SlotOf(const Node& node) {
  return static_cast<size_t>(std::get<int64_t>(*node.attrs.Find("slot")));
}

// The graph and all that it calls, directly or not, other than through graphs in `except`.
std::vector<uint32_t> ReachableFrom(const Module& module, uint32_t graph,
                                    const std::set<uint32_t>& except = {}) {
  std::vector<uint32_t> found = {graph};
  std::vector<bool> seen(module.graphs.size());
  for (uint32_t g : except) seen[g] = true;
  seen[graph] = true;
  for (size_t i = 0; i < found.size(); ++i) {
    for (const Node& node : module.graphs[found[i]].nodes) {
      for (uint32_t callee : GraphsNamedBy(node)) {
        if (!seen[callee]) found.push_back(callee);
        seen[callee] = true;
      }
    }
  }
  return found;
}

// Removes the nodes that no output depends on, whatever their effects: the graph only computes.
void RemoveUnneeded(Graph* graph) {
  std::vector<bool> needed(graph->value_count());
  for (ValueId v : graph->outputs) needed[IndexOf(v)] = true;
  std::vector<Node> kept;
  for (size_t n = graph->nodes.size(); n-- > 0;) {
    Node& node = graph->nodes[n];
    if (std::none_of(node.outputs.begin(), node.outputs.end(),
                     [&](ValueId v) { return v != kNoValue && needed[IndexOf(v)]; })) {
      continue;
    }
    for (ValueId v : node.inputs) {
      if (v != kNoValue) needed[IndexOf(v)] = true;
    }
    kept.push_back(std::move(node));
  }
  std::reverse(kept.begin(), kept.end());
  graph->nodes = std::move(kept);
}

}  // namespace

bool IsDifferentiable(const Type& type) { return type.is_tensor() && IsFloat(type.dtype); }

bool MayCarryGradient(const Type& type) {
  if (type.kind == TypeKind::kList) return MayCarryGradient(*type.element);
  return type.kind == TypeKind::kFunction || IsDifferentiable(type);
}

AttrList WithGraphs(const Node& node, const std::vector<uint32_t>& graphs) {
  AttrList attrs = node.attrs;
  switch (ShapeOfControl(node).kind) {
    case ControlKind::kIf:
      attrs.Set("then_branch", GraphRef{graphs[0]});
      attrs.Set("else_branch", GraphRef{graphs[1]});
      break;
    case ControlKind::kSwitch: {
      std::vector<GraphRef> branches;
      for (uint32_t g : graphs) branches.push_back({g});
      attrs.Set("branches", std::move(branches));
      break;
    }
    case ControlKind::kWhile:
      attrs.Set("condition", GraphRef{graphs[0]});
      attrs.Set("body", GraphRef{graphs[1]});
      break;
    case ControlKind::kLoop:
    case ControlKind::kScan:
      attrs.Set("body", GraphRef{graphs[0]});
      break;
    case ControlKind::kCall:
    case ControlKind::kPartial:
      if (!graphs.empty()) attrs.Set("graph", GraphRef{graphs[0]});
      break;
  }
  return attrs;
}

GradientGraphs::GradientGraphs(Module* module, uint32_t root, const OpSet* ops)
    : module_(*module), ops_(ops), written_(module->states.size()) {
  for (uint32_t g : ReachableFrom(module_, root)) {
    for (const Node& node : module_.graphs[g].nodes) {
      if (IsStateOp(node, "StateWrite")) written_[SlotOf(node)] = true;
    }
  }
}

Result<const GradientGraph*> GradientGraphs::Get(uint32_t graph, const std::vector<bool>& wanted,
                                                 const std::vector<bool>& with_gradient) {
  const auto [it, is_new] = made_.try_emplace({graph, wanted, with_gradient});
  if (!is_new) return it->second.get();
  it->second = std::make_unique<GradientGraph>();
  GradientGraph* const made = it->second.get();
  Status status = Make(graph, wanted, with_gradient, made);
  if (!status.ok())
    return std::move(status).Within(StrCat("graph ", graph, " '", module_.graphs[graph].name, "'"));
  return made;
}

Status GradientGraphs::Make(uint32_t graph, const std::vector<bool>& wanted,
                            const std::vector<bool>& with_gradient, GradientGraph* made) {
  Graph copy = module_.graphs[graph];
  copy.name += "/grad";
  RemoveWrites(&copy);
  GradientRequest request;
  for (size_t o = 0; o < copy.outputs.size(); ++o) {
    if (!with_gradient[o]) continue;
    const Type type = copy.value(copy.outputs[o]).type;
    request.of.push_back(copy.outputs[o]);
    request.seeds.push_back(copy.AddValue("", type));
  }
  for (size_t i = 0; i < copy.inputs.size(); ++i) {
    if (wanted[i]) request.with_respect_to.push_back(copy.inputs[i]);
  }
  copy.inputs.insert(copy.inputs.end(), request.seeds.begin(), request.seeds.end());
  made->graph = static_cast<uint32_t>(module_.graphs.size());
  module_.graphs.push_back(std::move(copy));
  unfinished_.insert(made->graph);
  MSRT_ASSIGN_OR_RETURN(std::vector<ValueId> gradients, AddGradientsIn(this, made->graph, request));
  Graph& finished = module_.graphs[made->graph];
  finished.outputs = std::move(gradients);
  RemoveUnneeded(&finished);
  unfinished_.erase(made->graph);
  MSRT_RETURN_IF_ERROR(CheckRepeatable(made->graph));
  const std::vector<uint32_t> uses = finished.UseCounts();
  for (ValueId v : finished.inputs) made->reads.push_back(uses[IndexOf(v)] != 0);
  made->complete = true;
  return OkStatus();
}

bool GradientGraphs::Writes(uint32_t graph) {
  const std::vector<uint32_t> graphs = ReachableFrom(module_, graph);
  return std::any_of(graphs.begin(), graphs.end(), [&](uint32_t g) {
    const std::vector<Node>& nodes = module_.graphs[g].nodes;
    return std::any_of(nodes.begin(), nodes.end(),
                       [](const Node& node) { return IsStateOp(node, "StateWrite"); });
  });
}

uint32_t GradientGraphs::WithoutWrites(uint32_t graph) {
  if (const auto found = without_writes_.find(graph); found != without_writes_.end())
    return found->second;
  if (!Writes(graph)) return without_writes_[graph] = graph;
  const auto copied = static_cast<uint32_t>(module_.graphs.size());
  without_writes_[graph] = copied;
  module_.graphs.emplace_back();
  Graph copy = module_.graphs[graph];
  copy.name += "/again";
  RemoveWrites(&copy);
  module_.graphs[copied] = std::move(copy);
  return copied;
}

void GradientGraphs::RemoveWrites(Graph* graph) {
  std::erase_if(graph->nodes, [](const Node& node) { return IsStateOp(node, "StateWrite"); });
  for (Node& node : graph->nodes) {
    if (!IsControl(node)) continue;
    std::vector<uint32_t> graphs = ShapeOfControl(node).graphs;
    for (uint32_t& g : graphs) g = WithoutWrites(g);
    node.attrs = WithGraphs(node, graphs);
  }
}

// A graph that is computed again must find the same state and draw the same numbers.
Status GradientGraphs::CheckRepeatable(uint32_t graph) const {
  for (uint32_t g : ReachableFrom(module_, graph, unfinished_)) {  // the others are checked later
    const Graph& called = module_.graphs[g];
    for (size_t n = 0; n < called.nodes.size(); ++n) {
      const Node& node = called.nodes[n];
      if (IsStateOp(node, "StateRead") && written_[SlotOf(node)]) {
        return Unsupported("the gradient computes ", Describe(called, n), " again, but state '",
                           module_.states[SlotOf(node)].name,
                           "' is written meanwhile: read it in the entry and pass the value");
      }
      if (DrawsNumbers(node) && !HasStep(node)) {
        return Unsupported("the gradient computes ", Describe(called, n),
                           " again and would draw other numbers: give the op a step "
                           "(PrepareForGradients does)");
      }
    }
  }
  return OkStatus();
}

}  // namespace msrt
