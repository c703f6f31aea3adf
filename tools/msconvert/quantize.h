// A tensor of f32 in fewer bits: f16, bf16, or integers with scales. Scales are symmetric (no zero
// points) and just large enough that nothing is clipped.
#pragma once

#include <optional>

#include "core/graph/tensor.h"

namespace msrt {

// Which elements share a scale: those with the same index along the axis or, if `block` is not 0,
// blocks of so many neighbours along the axis.
struct Grouping {
  int axis = 0;
  int64_t block = 0;
};

struct SmallTensor {
  ConstTensor data;
  std::optional<ConstTensor>
      scale;         // f32, for integers only: a list along the axis, or of the rank of the data
  double error = 0;  // the largest, relative to the largest element of the tensor
};

// `dtype` is f16, bf16, i8 or i4. Refuses tensors with elements that are not finite or, for f16,
// out of range.
Result<SmallTensor> StoreSmall(const ConstTensor& tensor, DType dtype, const Grouping& grouping);

}  // namespace msrt
