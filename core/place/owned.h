// Owned control nodes: those that a delegate runs whole, with the graphs that they call.
#pragma once

#include <string>
#include <vector>

#include "core/delegate/offered_graph.h"

namespace msrt {

// Returns the known graphs that the node calls, directly or indirectly, each once.
std::vector<const OfferedGraph*> GraphsInside(const OfferedGraph& graph, const Node& node);

// Returns why no delegate can own this control node; empty: one can. The conditions are those of
// msrt_candidate.
std::string WhyNotOwned(const OfferedGraph& graph, const Node& node);

}  // namespace msrt
