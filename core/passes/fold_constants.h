// Replaces nodes whose inputs are all constant by their results.
// Before: types inferred. After: no node with only constant inputs is left, unless its result is
// over the budget, it has effects, or the evaluator does not know it. Views and Shape of a value
// with known dims are folded too.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

// All but weights of some kilobytes that are stored in few bits and made wider by DequantizeLinear
// or Cast.
Status FoldConstants(const PassContext& context, Graph* graph);

// Those too, and what becomes constant by them. Apart, because a graph that will be written to a
// file goes without it: the file stays small, and whoever loads it widens.
Status WidenWeights(const PassContext& context, Graph* graph);

}  // namespace msrt
