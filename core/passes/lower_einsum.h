// Turns an Einsum of two operands that is a matrix product into one: Transposes that put batches
// first and the summed index between the others, Reshapes where several indices play one part, a
// MatMul, and the way back. Delegates have fast products, and recognition of attention looks for
// them. Left alone: sums over one operand, diagonals, operands that broadcast along an index.
// Before: types inferred.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status LowerEinsum(const PassContext& context, Graph* graph);

}  // namespace msrt
