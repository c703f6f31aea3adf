// Replaces nodes whose inputs are all constant by their results.
// Before: types inferred. After: no node with only constant inputs is left, unless its result is over the budget, it has effects,
// or the evaluator does not know it. Views and Shape of a value with known dims are folded too.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status FoldConstants(const PassContext& context, Graph* graph);

}  // namespace msrt
