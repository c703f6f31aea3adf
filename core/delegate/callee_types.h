// Type inference through a called graph.
#pragma once

#include "core/base/parallel_for.h"
#include "ops/propagate.h"

namespace msrt {

// Returns the types of the graph's outputs. `facts` has the types of its inputs. `infer_control`
// returns the output types of a control node, or nothing if it does not know them. Each visited
// node takes one from `nodes_left`. Empty if shapes contradict the graph or `nodes_left` reaches 0.
std::vector<Type> InferOutputTypes(
    const Graph& graph, GraphFacts facts, const Evaluator& evaluator, size_t* nodes_left,
    FunctionRef<std::vector<Type>(const Node&, const GraphFacts&)> infer_control);

}  // namespace msrt
