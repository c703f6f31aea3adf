// Runs before a module is exported: replaces layers that MindSpore lacks on the CPU by ops and
// loops that it has.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace msrt::mindir_export {

// The nodes that replaced one node.
struct ExpandedNode {
  uint32_t graph = 0;
  size_t first = 0, end = 0;  // nodes of the graph
  Node original;
};

// Replaces each GRU and RNN of the usual kind by a Scan over its steps for each direction; others
// stay as they are and are refused later. Requires a validated module and keeps it valid. Returns
// the expanded nodes in graph order.
Result<std::vector<ExpandedNode>> ExpandRecurrent(Module* module);

}  // namespace msrt::mindir_export
