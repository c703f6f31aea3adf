// Elements of any type, in and out of the three types that elementwise kernels compute in: double
// for floats, int64_t for signed integers, uint64_t for unsigned ones and bool. A kernel then is a
// table of scalar functions, compiled once, not once for each type. Conversions follow ONNX Cast,
// and what that leaves undefined is defined here: a float beyond an integer's range gives its
// nearest value, NaN gives 0.
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

// How many elements a kernel converts at a time; even, so that two elements of 4 bits never fall to
// different workers.
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

// Elements first, first + stride, ... of a tensor of any type. W is double, int64_t or uint64_t;
// values that do not fit wrap (integers) or saturate (floats), so with W of WideTypeOf(type) the
// conversion is exact.
template <typename W>
void LoadElements(DType type, const void* data, int64_t first, int64_t stride, int64_t count,
                  W* out);

// Stores into elements [first, first + count), converting to `type`. `saturate` is that of Cast and
// matters for 8-bit floats only. For types of 4 bits, `first` must be even, and a last half byte
// that no element fills becomes zero.
template <typename W>
void StoreElements(DType type, void* data, int64_t first, int64_t count, const W* values,
                   bool saturate = true);

// All of a plain tensor of any type, as doubles.
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
