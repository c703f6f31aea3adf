// How far a tensor is from the one it should be.
#pragma once

#include "core/graph/tensor.h"

namespace msrt {

inline TensorView ViewOf(const ConstTensor& t) { return {t.dtype, t.dims, Layout::kPlain, const_cast<std::byte*>(t.bytes.data())}; }

struct Deviation {
  double largest = 0;   // absolute; infinite where one of the two is NaN and the other is not
  double relative = 0;  // to the range of what is wanted, which counts as 1 if it is empty
  size_t element = 0;   // where
};

// Refuses tensors of different dims.
Result<Deviation> Compare(const TensorView& got, const TensorView& want);

}  // namespace msrt
