// Before a module is exported: layers that MindSpore lacks on the CPU become ops and loops that it
// has.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace msrt::mindir_export {

// Nodes that stand in the place of one.
struct Expanded {
  uint32_t graph = 0;
  size_t first = 0, end = 0;  // nodes of the graph
  Node original;
};

// GRU and RNN become a Scan over their steps for each direction, where they are of the usual kind;
// others stay as they are, and are refused later. Requires a validated module and leaves one. Gives
// what was expanded, in the order in which it stands.
Result<std::vector<Expanded>> ExpandRecurrent(Module* module);

}  // namespace msrt::mindir_export
