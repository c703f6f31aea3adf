// Folds products and sums with constants of one number, or one for each channel, into the constant
// weights and bias of the Conv, ConvTranspose, Gemm or MatMul that stands before or behind them.
// Before: activations are recognised, whose factors these might be; the value in between has no
// other use. A sum before a convolution is folded only where nothing is padded. f32.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status FoldScale(const PassContext& context, Graph* graph);

}  // namespace msrt
