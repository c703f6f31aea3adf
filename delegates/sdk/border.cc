#include "delegates/sdk/border.h"

#include <algorithm>
#include <set>

namespace msrt::sdk {
namespace {

const msrt_node_view& NodeAt(const msrt_graph_view& graph, uint32_t node) {
  return *graph.node(graph.graph, node);
}

// Whether a node outside of the candidate reads the value.
bool IsReadOutside(const msrt_graph_view& graph, std::span<const uint32_t> nodes, int64_t value) {
  for (uint32_t n = 0; n < graph.node_count; ++n) {
    if (std::binary_search(nodes.begin(), nodes.end(), n)) continue;
    const msrt_node_view& node = NodeAt(graph, n);
    for (size_t i = 0; i < node.input_count; ++i) {
      if (node.inputs[i].id == value) return true;
    }
  }
  return false;
}

}  // namespace

Border BorderOf(const msrt_graph_view& graph, std::span<const uint32_t> nodes) {
  Border border;
  std::set<int64_t> seen;
  const bool single = nodes.size() == 1;
  for (uint32_t n = 0; n < nodes.size(); ++n) {
    const msrt_node_view& node = NodeAt(graph, nodes[n]);
    for (uint32_t i = 0; i < node.input_count; ++i) {
      const int64_t id = node.inputs[i].id;
      if (single || (id >= 0 && seen.insert(id).second)) border.inputs.push_back({n, i});
    }
    for (uint32_t i = 0; i < node.output_count; ++i) {
      const int64_t id = node.outputs[i].id;
      if (id >= 0) seen.insert(id);
      if (single ||
          (id >= 0 && (node.outputs[i].is_graph_output != 0 || IsReadOutside(graph, nodes, id))))
        border.outputs.push_back({n, i});
    }
  }
  return border;
}

}  // namespace msrt::sdk
