#include "core/train/parameter_uses.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>

namespace msrt {
namespace {

int64_t IntOf(const Node& node, std::string_view name) {
  const AttrValue* value = node.attrs.Find(name);
  return value == nullptr ? 0 : std::get<int64_t>(*value);
}

// The axis of a weight that numbers the outputs of its node; -1: it is no such weight.
int OutputAxis(const Node& node, size_t input, int rank) {
  if (!node.domain.empty() || input != 1 || rank < 2) return -1;
  if (node.op == "Conv") return 0;
  if (node.op == "ConvTranspose") return 1;
  if (node.op == "Gemm") return IntOf(node, "transB") != 0 ? 0 : 1;
  return node.op == "MatMul" && rank == 2 ? 1 : -1;
}

}  // namespace

std::vector<size_t> OrderOfUse(const Graph& graph, const std::vector<ValueId>& parameters) {
  std::vector<size_t> first_use(graph.value_count(), graph.nodes.size());
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    for (ValueId v : graph.nodes[n].inputs) {
      if (v != kNoValue) first_use[IndexOf(v)] = n;
    }
  }
  std::vector<size_t> order(parameters.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return first_use[IndexOf(parameters[a])] < first_use[IndexOf(parameters[b])];
  });
  return order;
}

std::vector<std::vector<int64_t>> SummedAxes(const Graph& graph,
                                             const std::vector<ValueId>& parameters) {
  std::map<ValueId, size_t> position;
  for (size_t p = 0; p < parameters.size(); ++p) position.emplace(parameters[p], p);
  std::vector<std::vector<int64_t>> axes(parameters.size());
  for (const Node& node : graph.nodes) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto found = position.find(node.inputs[i]);
      if (found == position.end() || !axes[found->second].empty()) continue;
      const int rank = graph.value(node.inputs[i]).type.rank();
      const int output = OutputAxis(node, i, rank);
      for (int d = 0; output >= 0 && d < rank; ++d) {
        if (d != output) axes[found->second].push_back(d);
      }
    }
  }
  return axes;
}

}  // namespace msrt
