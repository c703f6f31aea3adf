// Tensors as kernels number them: dims with divisions, and strides, merged where neighbours in the
// list of dims are neighbours in memory.
#pragma once

#include <span>
#include <vector>

#include "core/base/dims.h"
#include "delegates/cuda/kernels/arguments.h"

namespace msrt::cuda {

// Requires 1 <= divisor < 2^31.
Division DivisionBy(int64_t divisor);

// The dims without those of extent 1, and with those merged that follow one another in all of the
// given lists of strides (which have as many entries as the dims, and are changed alike).
Dims Merge(const Dims& dims, std::span<Dims* const> strides);

// Requires fewer than 2^31 elements, and at least one.
Space SpaceOf(const Dims& dims);

// Strides of a tensor that broadcasts to `to`: 0 along the dims that it lacks or has 1 in.
Dims BroadcastStrides(const Dims& from, const Dims& to);

template <typename Stride>
void CopyStrides(const Dims& strides, Stride* out) {
  for (int i = 0; i < strides.rank(); ++i) out[i] = static_cast<Stride>(strides[i]);
}

}  // namespace msrt::cuda
