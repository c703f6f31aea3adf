// Numbers of elements as coordinates, in kernels.
#pragma once

#include "delegates/cuda/kernels/arguments.h"
#include "delegates/cuda/kernels/kernel.h"

namespace msrt::cuda {

DEVICE uint32_t Quotient(uint32_t n, const Division& d) {
  return (__umulhi(n, d.multiplier) + n) >> d.shift;
}

// Splits n into quotient and remainder; returns the remainder.
DEVICE uint32_t Split(uint32_t* n, const Division& d) {
  const uint32_t quotient = Quotient(*n, d), remainder = *n - quotient * d.divisor;
  *n = quotient;
  return remainder;
}

// The first element of this thread, and the distance to its next one.
DEVICE uint32_t FirstElement() { return blockIdx.x * blockDim.x + threadIdx.x; }
DEVICE uint32_t ElementStep() { return gridDim.x * blockDim.x; }

// Offset of element i of the space.
template <typename Stride>
DEVICE int64_t OffsetIn(const Space& space, const Stride* strides, uint32_t i) {
  int64_t offset = 0;
  for (int d = space.rank - 1; d > 0; --d)
    offset += static_cast<int64_t>(Split(&i, space.dims[d])) * strides[d];
  return space.rank > 0 ? offset + static_cast<int64_t>(i) * strides[0] : 0;
}

// Reports bad data through the stream's fault word. Any of several faults may win.
DEVICE void ReportFault(uint64_t* word, uint64_t kind, uint64_t element) {
  *static_cast<volatile uint64_t*>(word) = kind << 56 | (element & 0xffffffffffffffull);
}
constexpr uint64_t kFaultIndex = 1, kFaultDivision = 2;

}  // namespace msrt::cuda
