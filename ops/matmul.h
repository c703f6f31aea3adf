// Inference, iteration space and cost of MatMul, shared by ops that are matrix products with
// something around them. They work on a view whose first two inputs are the operands.
#pragma once

#include "ops/op_def.h"

namespace msrt {

// Output 0 has the element type of the first operand.
Status InferMatMul(InferContext& c);
// The same with an optional bias that broadcasts to the product and an optional residual of its
// shape, inputs 2 and 3.
Status InferFusedMatMul(InferContext& c);
// Axes: batch..., rows, columns, depth; a vector operand lacks the axis it does not have.
extern const SpaceDef kMatMulSpace;
Cost MatMulCost(const OpView& op);

}  // namespace msrt
