// Converts elements of any type to and from the three types that elementwise kernels compute in:
// double for floats, int64_t for signed integers, uint64_t for unsigned ones and bool. A kernel
// then is a table of scalar functions, compiled once, not once per type. Conversions follow ONNX
// Cast and define the cases that it leaves open: a float beyond an integer's range becomes the
// nearest integer of the type, NaN becomes 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/parallel_for.h"
#include "core/graph/dtype.h"
#include "core/graph/tensor.h"
#include "delegates/reference/number.h"

namespace msrt::reference {

// Number of elements that a kernel converts at a time. Even, so that the two 4-bit elements of a
// byte never go to different threads.
inline constexpr int64_t kBlockElements = 512;

enum class WideType : uint8_t { kDouble, kSigned, kUnsigned };
WideType WideTypeOf(DType type);

// Calls f with the wide type of `type`: f.operator()<double>() and so on.
template <typename F>
auto DispatchWide(DType type, F&& f) {
  switch (WideTypeOf(type)) {
    case WideType::kDouble:
      return f.template operator()<double>();
    case WideType::kSigned:
      return f.template operator()<int64_t>();
    case WideType::kUnsigned:
      break;
  }
  return f.template operator()<uint64_t>();
}

// Loads elements first, first + stride, ... of a tensor of any type. W is double, int64_t or
// uint64_t. Values that do not fit wrap (integers) or saturate (floats); if W is the
// WideTypeOf(type) the conversion is exact.
template <typename W>
void LoadElements(DType type, const void* data, int64_t first, int64_t stride, int64_t count,
                  W* out);

// Stores into elements [first, first + count), converting to `type`. `saturate` is that of Cast and
// matters for 8-bit floats only. For types of 4 bits, `first` must be even, and an unused last half
// byte becomes zero.
template <typename W>
void StoreElements(DType type, void* data, int64_t first, int64_t count, const W* values,
                   bool saturate = true);

// Returns all elements of a plain tensor of any type as doubles.
std::vector<double> Doubles(const TensorView& t);

// Calls body(first, count) for every block of [0, elements).
template <typename Body>
Status ForEachBlock(ParallelFor& parallel, int64_t elements, Body&& body) {
  const int64_t blocks = elements / kBlockElements + (elements % kBlockElements != 0);
  return ParallelRanges(parallel, blocks, 8, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      body(b * kBlockElements, std::min(kBlockElements, elements - b * kBlockElements));
  });
}

}  // namespace msrt::reference
