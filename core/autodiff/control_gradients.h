// Gradients of nodes that call graphs.
//
// The gradient of a graph is a graph: it takes the inputs of the graph and the gradients of its
// outputs, computes the graph again, and returns the gradients of its inputs. So If differentiates
// as If, Call as Call, and recursion needs no more than that the gradient graph of a graph exists
// once.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace msrt {

class OpSet;  // ops/registry.h

// Appends to graph `graph` of the module the gradients of the inputs of a control node of it.
// `output_grads` and `wanted` are those of GradBuilder. Returns one value for each input of the
// node; kNoValue: zero.
Result<std::vector<ValueId>> AddControlGradients(Module* module, uint32_t graph, const Node& node,
                                                 const std::vector<ValueId>& output_grads,
                                                 const std::vector<bool>& wanted,
                                                 const OpSet* ops);

}  // namespace msrt
