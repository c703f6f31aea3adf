// Removes nodes that move data without need: Identity, Cast to the same type, Slice of everything,
// Expand to its own shape, products with 1, Transposes that cancel, chains of views. A Gather of
// one index becomes a Slice; views around a Transpose that shuffle channels become a Gather; a
// Transpose that moves only dims of 1 becomes a Reshape; a Transpose before elementwise nodes moves
// after them if it then meets another; an axis that is split after a Transpose is split before it.
// Before: types inferred. Dims count as equal only where that is known for every run.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status EliminateMoves(const PassContext& context, Graph* graph);

}  // namespace msrt
