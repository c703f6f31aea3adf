// Replaces the chains of means, squares, roots and quotients that exporters write by
// LayerNormalization and RMSNormalization: PyTorch's, TensorFlow's (x * g + (b - mean * g)) and
// those without a mean. An InstanceNormalization between Reshapes becomes GroupNormalization.
// Before: common nodes merged, views without effect removed. Only over trailing axes; the values
// inside a chain have no other use; epsilon is a constant; f32 and f64.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status RecognizeNorms(const PassContext& context, Graph* graph);

}  // namespace msrt
