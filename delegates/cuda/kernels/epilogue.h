// What follows a product or a convolution, each step rounded: bias, residual, activation.
#pragma once

#include "delegates/cuda/kernels/pointwise.h"

namespace msrt::cuda {

// The activations that are one operation. Others are a launch of their own: inlined 16 times, code
// for every function would be large, and a call would spill the sums.
template <typename W>
DEVICE W BoundActivation(int32_t op, W x, W a, W b) {
  if (op == kOpRelu) return x < 0 ? W{0} : x;
  if (op == kOpLeakyRelu) return x < 0 ? a * x : x;
  return ClampTo(x, a, b);
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
    y = BoundActivation<W>(end.activation, y, static_cast<W>(end.a), static_cast<W>(end.b));
  return y;
}

DEVICE float FusedMultiplyAdd(float a, float b, float c) { return fmaf(a, b, c); }
DEVICE double FusedMultiplyAdd(double a, double b, double c) { return fma(a, b, c); }

}  // namespace msrt::cuda
