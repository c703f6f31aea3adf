#include "core/autodiff/control_gradients.h"

#include "core/autodiff/gradient_graphs.h"
#include "ops/control.h"
#include "ops/grad_builder.h"

namespace msrt {
namespace {

// If, SwitchN and Call: the same node with the gradients of the graphs that it calls.
Result<std::vector<ValueId>> BranchGradients(GradientGraphs* graphs, uint32_t g, const Node& node,
                                             const std::vector<ValueId>& output_grads,
                                             const std::vector<bool>& wanted) {
  Module& module = graphs->module();
  const ControlShape shape = ShapeOfControl(node);
  std::vector<bool> with_gradient(module.graphs[shape.graphs[0]].outputs.size());
  std::vector<ValueId> inputs = node.inputs;
  for (size_t o = 0; o < output_grads.size(); ++o) {
    if (output_grads[o] == kNoValue) continue;
    with_gradient[o] = true;
    inputs.push_back(output_grads[o]);
  }
  const std::vector<bool> wanted_of_callee(wanted.begin() + static_cast<ptrdiff_t>(shape.leading),
                                           wanted.end());
  std::vector<uint32_t> gradient_graphs;
  for (uint32_t callee : shape.graphs) {
    MSRT_ASSIGN_OR_RETURN(const GradientGraph* gradient,
                          graphs->Get(callee, wanted_of_callee, with_gradient));
    gradient_graphs.push_back(gradient->graph);
  }
  // The gradient of an input has its type, which also a graph that is not finished will return.
  Graph& graph = module.graphs[g];
  std::vector<Type> types;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (wanted[i]) types.push_back(graph.value(node.inputs[i]).type);
  }
  const size_t count = types.size();
  MSRT_ASSIGN_OR_RETURN(
      const std::vector<ValueId> gradients,
      GraphBuilder(&graph, graphs->ops())
          .Add(node.domain, node.op, StrCat(node.name, "/grad"), std::move(inputs),
               WithGraphs(node, gradient_graphs), count, std::move(types)));
  std::vector<ValueId> results(node.inputs.size(), kNoValue);
  for (size_t i = 0, next = 0; i < node.inputs.size(); ++i) {
    if (wanted[i]) results[i] = gradients[next++];
  }
  return results;
}

}  // namespace

Result<std::vector<ValueId>> AddControlGradients(GradientGraphs* graphs, uint32_t graph, size_t n,
                                                 const std::vector<ValueId>& output_grads,
                                                 const std::vector<bool>& wanted) {
  const Node node = graphs->module().graphs[graph].nodes[n];  // a copy: graphs are added
  const ControlShape shape = ShapeOfControl(node);
  switch (shape.kind) {
    case ControlKind::kLoop:
    case ControlKind::kScan:
    case ControlKind::kWhile:
      return AddLoopGradients(graphs, graph, n, output_grads, wanted);
    case ControlKind::kCall:
      if (shape.graphs.empty()) {
        return Unsupported(
            "calls a function whose graph is not known here, so that there is no gradient: call "
            "the graph, or choose among graphs with If or SwitchN (PrepareForGradients resolves "
            "functions where it can)");
      }
      return BranchGradients(graphs, graph, node, output_grads, wanted);
    case ControlKind::kIf:
    case ControlKind::kSwitch:
      return BranchGradients(graphs, graph, node, output_grads, wanted);
    case ControlKind::kPartial:
      break;
  }
  return Unsupported("functions have no gradient");
}

}  // namespace msrt
