// Compares a tensor with the expected one.
#pragma once

#include "core/graph/tensor.h"

namespace msrt {

inline TensorView ViewOf(const ConstTensor& t) {
  return {t.dtype, t.dims, Layout::kPlain, const_cast<std::byte*>(t.bytes.data())};
}

struct Deviation {
  double largest = 0;    // absolute; infinite if just one of the two is NaN
  double relative = 0;   // `largest` divided by the range of the wanted numbers; if that is 0, by
                         // their magnitude, at least kSmallValue
  size_t element = 0;    // index of the largest difference
  double magnitude = 0;  // of the largest wanted number
  size_t elements = 0;
  size_t both_nan = 0;     // elements that are NaN in both
  bool one_value = false;  // all wanted elements are the same number, or all are NaN
  static constexpr double kSmallValue = 1e-3;
};

// Refuses tensors of different dims.
Result<Deviation> Compare(const TensorView& got, const TensorView& want);

}  // namespace msrt
