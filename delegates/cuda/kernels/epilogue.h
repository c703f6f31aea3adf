// What follows a product or a convolution, each step rounded: bias, residual, activation.
#pragma once

#include "delegates/cuda/kernels/pointwise.h"

namespace msrt::cuda {

#ifdef __CUDACC__
#define DEVICE_CALL __device__ __noinline__
#else
#define DEVICE_CALL inline
#endif

// Called, not inlined: a thread finishes 16 elements, and code for every function 16 times over
// would be large and slow to compile.
template <typename W>
DEVICE_CALL W Activate(int32_t op, W x, W a, W b) {
  return FloatFunction<W>(op, x, a, b);
}

// W is float or double. `i` is the element's offset in the output, `bias` its offset in the bias.
template <typename W>
DEVICE W Finish(const Epilogue& end, int32_t type, W sum, int64_t i, bool add_bias, int64_t bias) {
  W y = sum;
  if (end.alpha != 1) y = static_cast<W>(end.alpha) * y;
  if (add_bias && end.bias != nullptr) {
    const W b = LoadReal<W>(type, end.bias, bias);
    y = y + (end.beta != 1 ? static_cast<W>(end.beta) * b : b);
  }
  if (end.residual != nullptr) y = y + LoadReal<W>(type, end.residual, i);
  if (end.activation >= 0)
    y = Activate<W>(end.activation, y, static_cast<W>(end.a), static_cast<W>(end.b));
  return y;
}

DEVICE float FusedMultiplyAdd(float a, float b, float c) { return fmaf(a, b, c); }
DEVICE double FusedMultiplyAdd(double a, double b, double c) { return fma(a, b, c); }

}  // namespace msrt::cuda
