// Replaces nodes whose inputs are all constant by their results.
// Before: types inferred. After: no node with only constant inputs is left, unless its result is
// over the budget, it has effects, or the evaluator does not know it. Views and Shape of a value
// with known dims are folded too.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

// Folds everything except weights of some kilobytes that are stored in few bits and widened by
// DequantizeLinear or Cast.
Status FoldConstants(const PassContext& context, Graph* graph);

// Folds those too, and the nodes that become constant by that. A separate pass, because a graph
// that will be written to a file skips it: the file stays small, and the loader widens the weights.
Status WidenWeights(const PassContext& context, Graph* graph);

}  // namespace msrt
