#include "core/passes/remove_dead.h"

#include <algorithm>

namespace msrt {

Status RemoveDead(const PassContext&, Graph* graph) {
  std::vector<bool> wanted(graph->value_count());
  for (ValueId v : graph->outputs) wanted[IndexOf(v)] = true;
  std::vector<bool> keep(graph->nodes.size());
  for (size_t n = graph->nodes.size(); n-- > 0;) {
    const Node& node = graph->nodes[n];
    // An unknown op may have effects that we cannot see.
    keep[n] = !IsPure(node) ||
              std::any_of(node.outputs.begin(), node.outputs.end(),
                          [&](ValueId v) { return v != kNoValue && wanted[IndexOf(v)]; });
    if (!keep[n]) continue;
    for (ValueId v : node.inputs) {
      if (v != kNoValue) wanted[IndexOf(v)] = true;
    }
  }
  size_t next = 0;
  for (size_t n = 0; n < graph->nodes.size(); ++n) {
    if (!keep[n]) continue;
    if (next != n) graph->nodes[next] = std::move(graph->nodes[n]);
    ++next;
  }
  graph->nodes.resize(next);
  graph->CompactValues();
  return OkStatus();
}

}  // namespace msrt
