// Output types of control flow at typical shapes. Without them every node after an If would be
// placed blindly.
#pragma once

#include "ops/control.h"
#include "ops/propagate.h"

namespace msrt {

// Returns the types of the node's outputs in the branch that it takes, if `facts` determine it,
// else in the first branch whose types are all concrete. Empty if unknown: for loops and functions,
// beyond a few levels, and where typical shapes contradict the graphs. `nodes_left` bounds the work
// over all calls.
std::vector<Type> TypicalResults(const Module& module, const Node& node, const GraphFacts& facts,
                                 const Evaluator& evaluator, size_t* nodes_left);

}  // namespace msrt
