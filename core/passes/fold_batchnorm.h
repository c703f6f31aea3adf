// Folds a BatchNormalization with constant parameters into the constant weights of the Conv or
// ConvTranspose before it. Before: the convolution's output has no other use. After: the pair is
// one convolution with a bias.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status FoldBatchNorm(const PassContext& context, Graph* graph);

}  // namespace msrt
