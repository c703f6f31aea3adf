// Turns an Einsum of two operands that is a matrix product into one: Transposes that put batches
// first and the summed index between the others, Reshapes where several indices form one dim, a
// MatMul, and the inverse. Delegates have fast products, and attention is recognised by them. Not
// lowered: sums over one operand, diagonals, operands that broadcast along an index. Before: types
// inferred.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status LowerEinsum(const PassContext& context, Graph* graph);

}  // namespace msrt
