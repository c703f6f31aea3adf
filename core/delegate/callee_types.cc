#include "core/delegate/callee_types.h"

#include "ops/control.h"

namespace msrt {

std::vector<Type> InferOutputTypes(
    const Graph& graph, GraphFacts facts, const Evaluator& evaluator, size_t* nodes_left,
    FunctionRef<std::vector<Type>(const Node&, const GraphFacts&)> infer_control) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (*nodes_left == 0 || !PropagateNode(graph, n, evaluator, &facts).ok()) return {};
    --*nodes_left;
    const Node& node = graph.nodes[n];
    if (!IsControl(node)) continue;
    const std::vector<Type> results = infer_control(node, facts);
    for (size_t o = 0; o < results.size() && o < node.outputs.size(); ++o) {
      if (node.outputs[o] != kNoValue) facts.types[IndexOf(node.outputs[o])] = results[o];
    }
  }
  std::vector<Type> given;
  for (ValueId v : graph.outputs) given.push_back(facts.types[IndexOf(v)]);
  return given;
}

}  // namespace msrt
