// Copies a tensor from one layout into another.
#pragma once

#include "core/base/parallel_for.h"
#include "core/graph/tensor.h"

namespace msrt {

// Same element type and dims on both sides, no overlap. Between equal layouts it is a plain copy.
// Either side may have strides; the padding of a blocked tensor is then as long as its block.
Status ConvertLayout(const TensorView& from, const TensorView& to, ParallelFor& parallel);

}  // namespace msrt
