// What control flow gives at typical shapes: without it everything behind an If would be placed
// blindly.
#pragma once

#include "ops/control.h"
#include "ops/propagate.h"

namespace msrt {

// The types of the node's outputs in the branch that it takes, if `facts` tell which, else in the
// first that says something definite. Empty where that is not known: for loops and functions,
// beyond a few levels, and where typical shapes contradict the graphs. `nodes_left` bounds the work
// over all calls.
std::vector<Type> TypicalResults(const Module& module, const Node& node, const GraphFacts& facts,
                                 const Evaluator& evaluator, size_t* nodes_left);

}  // namespace msrt
