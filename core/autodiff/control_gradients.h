// Gradients of nodes that call graphs: If differentiates as If, SwitchN as SwitchN and Call as Call
// of gradient graphs (gradient_graphs.h).
//
// A loop saves what its iterations begin with: its node gets further scanned outputs. Its gradient
// is a Scan over them from the last iteration to the first, whose body is the gradient of the
// loop's body, and which carries the gradients of carried values and the sums of those of captured
// ones. A While becomes a Loop first. A carried value whose size may change from iteration to
// iteration is saved in a list.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace msrt {

class GradientGraphs;  // gradient_graphs.h

// Appends to graph `graph` of the module the gradients of the inputs of its control node `n`, which
// may be changed and may move to a later position. `output_grads` and `wanted` are those of
// GradBuilder. Returns one value for each input of the node; kNoValue: zero.
Result<std::vector<ValueId>> AddControlGradients(GradientGraphs* graphs, uint32_t graph, size_t n,
                                                 const std::vector<ValueId>& output_grads,
                                                 const std::vector<bool>& wanted);

// The same for Loop, Scan and While.
Result<std::vector<ValueId>> AddLoopGradients(GradientGraphs* graphs, uint32_t graph, size_t n,
                                              const std::vector<ValueId>& output_grads,
                                              const std::vector<bool>& wanted);

}  // namespace msrt
