// Folds products and sums with constants of one number, or one for each channel, into the constant
// weights and bias of the Conv, ConvTranspose, Gemm or MatMul before or after them. Before:
// activations are recognised, since these might be their factors; the value in between has no other
// use. A sum before a convolution is folded only if nothing is padded. f32 only.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status FoldScale(const PassContext& context, Graph* graph);

}  // namespace msrt
