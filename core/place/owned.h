// Control nodes that a delegate takes whole, with the graphs that they call.
#pragma once

#include <string>
#include <vector>

#include "core/delegate/offered_graph.h"

namespace msrt {

// The graphs that the node calls and those that these call, each once. As far as they are known;
// never without end.
std::vector<const OfferedGraph*> GraphsInside(const OfferedGraph& graph, const Node& node);

// Why no delegate can have this control node; empty: one can. The conditions are those of
// msrt_candidate.
std::string WhyNotOwned(const OfferedGraph& graph, const Node& node);

}  // namespace msrt
