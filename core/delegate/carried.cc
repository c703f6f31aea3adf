#include "core/delegate/carried.h"

#include <algorithm>

#include "ops/control.h"

namespace msrt {
namespace {

bool IsRead(const Graph& graph, ValueId v) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) {
    return std::find(n.inputs.begin(), n.inputs.end(), v) != n.inputs.end();
  });
}

std::vector<CarriedPair> PairsOf(const Module& module, const ControlShape& shape) {
  const Graph& body = module.graphs[shape.graphs.back()];
  const Graph* condition =
      shape.kind == ControlKind::kWhile ? &module.graphs[shape.graphs[0]] : nullptr;
  std::vector<CarriedPair> pairs;
  for (size_t i = 0; i < shape.carried; ++i) {
    const ValueId begin = body.inputs[shape.body_extra_inputs() + i],
                  end = body.outputs[shape.body_extra_outputs() + i];
    const auto named = [&](ValueId v) {
      return std::count(body.outputs.begin(), body.outputs.end(), v);
    };
    if (named(begin) != 0 || named(end) != 1 || !body.value(begin).type.is_tensor() ||
        !body.value(end).type.is_tensor())
      continue;
    pairs.push_back({begin, end, condition != nullptr && IsRead(*condition, condition->inputs[i])});
  }
  return pairs;
}

}  // namespace

std::vector<std::vector<CarriedPair>> FindCarried(const Module& module) {
  std::vector<std::vector<CarriedPair>> carried(module.graphs.size());
  std::vector<int> callers(module.graphs.size());
  for (uint32_t entry : module.entries) ++callers[entry];
  for (const Graph& graph : module.graphs) {
    for (const Node& node : graph.nodes) {
      if (!IsControl(node)) continue;
      const ControlShape shape = ShapeOfControl(node);
      for (uint32_t callee : shape.graphs) ++callers[callee];
      if (shape.carried != 0) carried[shape.graphs.back()] = PairsOf(module, shape);
    }
  }
  for (size_t g = 0; g < carried.size(); ++g) {
    if (callers[g] != 1) carried[g].clear();
  }
  return carried;
}

}  // namespace msrt
