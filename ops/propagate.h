// Propagates types and small values through a graph from the types of its inputs, node by node.
// Placement uses it for typical shapes, a binding for its sizes. Integers that describe shapes (the
// outputs of Shape and values computed from them) are evaluated on the way, so that a Reshape whose
// target comes from a Shape has known dims.
#pragma once

#include <deque>
#include <vector>

#include "ops/evaluator.h"
#include "ops/op_def.h"

namespace msrt {

struct GraphFacts {
  std::vector<Type> types;                // by value
  std::vector<const ConstTensor*> known;  // by value: its data if known, else null
  std::deque<ConstTensor>
      evaluated;  // owns the data of `known` that is not a constant of the graph

  // Constants are known; everything else starts with its declared type.
  explicit GraphFacts(const Graph& graph);
  void SetKnown(ValueId value, ConstTensor data);
};

// Infers the output types of one node, and evaluates it if all its inputs are known and the result
// is small. Unknown ops keep their declared types. The node's inputs must have been propagated.
// Dims may stay unknown: the caller decides whether that matters.
Status PropagateNode(const Graph& graph, size_t node, const Evaluator& evaluator,
                     GraphFacts* facts);

// The same for a node whose entry has `sizes`, when the data exists: data[i] is input i if the
// entry asks for it, else null.
Status PropagateSized(const Graph& graph, size_t node, std::span<const ConstTensor* const> data,
                      GraphFacts* facts);

}  // namespace msrt
