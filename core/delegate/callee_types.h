// What a graph gives, as far as types tell, when it is called.
#pragma once

#include "core/base/parallel_for.h"
#include "ops/propagate.h"

namespace msrt {

// The types of the graph's outputs. `facts` begins with those of its inputs. `inside` tells what
// control flow in it gives: nothing where it does not know. Takes from `nodes_left` what it looks
// at. Empty where shapes contradict the graph, or nothing is left.
std::vector<Type> InferOutputTypes(
    const Graph& graph, GraphFacts facts, const Evaluator& evaluator, size_t* nodes_left,
    FunctionRef<std::vector<Type>(const Node&, const GraphFacts&)> inside);

}  // namespace msrt
