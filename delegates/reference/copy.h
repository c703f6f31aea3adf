// The copy loop of all movement kernels: every output element comes from a source offset that is
// the sum of one number per axis. Strides (Transpose, Slice, Expand) are the plain case; Tile and
// Pad have their own rule.
#pragma once

#include <algorithm>

#include "core/base/dims.h"
#include "core/base/parallel_for.h"
#include "delegates/reference/dispatch.h"

namespace msrt::reference {

inline constexpr int64_t kNoSource = -1;

// destination[i0, i1, ...] = source[offset(0, i0) + offset(1, i1) + ...], or `fill` where any axis
// returns kNoSource. offset(axis, index) returns a number of elements.
template <typename T, typename AxisOffset>
Status CopyByAxis(ParallelFor& parallel, const T* source, const Dims& dims, T* destination, T fill,
                  AxisOffset offset) {
  if (dims.elements() == 0) return OkStatus();
  const int last = dims.rank() - 1;
  const int64_t columns = dims.empty() ? 1 : dims[last], rows = dims.elements() / columns;
  const auto copy_rows = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t base = 0, rest = row;
      for (int axis = last - 1; axis >= 0 && base != kNoSource; --axis) {
        const int64_t at = offset(axis, rest % dims[axis]);
        base = at == kNoSource ? kNoSource : base + at;
        rest /= dims[axis];
      }
      T* to = destination + row * columns;
      for (int64_t column = 0; column < columns; ++column) {
        const int64_t at = dims.empty() ? 0 : offset(last, column);
        to[column] = base == kNoSource || at == kNoSource ? fill : source[base + at];
      }
    }
  };
  const int64_t grain = std::max<int64_t>(1, 16384 / columns);
  return ParallelRanges(parallel, rows, grain, copy_rows);
}

// Merges axes that are walked as one and removes axes of extent 1.
inline void MergeAxes(Dims* dims, Dims* strides) {
  Dims merged_dims, merged_strides;
  for (int i = 0; i < dims->rank(); ++i) {
    if ((*dims)[i] == 1) continue;
    const int last = merged_dims.rank() - 1;
    if (last >= 0 && merged_strides[last] == (*strides)[i] * (*dims)[i]) {
      merged_dims[last] *= (*dims)[i];
      merged_strides[last] = (*strides)[i];
    } else {
      merged_dims.push_back((*dims)[i]);
      merged_strides.push_back((*strides)[i]);
    }
  }
  *dims = merged_dims;
  *strides = merged_strides;
}

// destination[i] = source[start + sum of i[axis] * strides[axis]]; strides may be zero or negative.
inline Status StridedCopy(ParallelFor& parallel, DType dtype, const void* source, int64_t start,
                          Dims strides, Dims dims, void* destination) {
  if (dims.elements() == 0) return OkStatus();
  MergeAxes(&dims, &strides);
  return DispatchWidth(dtype, [&]<typename T>() -> Status {
    if (dims.empty() || (dims.rank() == 1 && strides[0] == 1)) {
      const T* from = static_cast<const T*>(source) + start;
      constexpr int64_t kGrain = 1 << 16;
      return ParallelRanges(parallel, dims.elements(), kGrain, [&](int64_t begin, int64_t end) {
        std::copy(from + begin, from + end, static_cast<T*>(destination) + begin);
      });
    }
    // Starts at the lowest offset: CopyByAxis takes -1 for "no source", so no axis may have a
    // negative offset.
    Dims low = Dims::Filled(dims.rank(), 0);
    int64_t first = start;
    for (int i = 0; i < dims.rank(); ++i) {
      if (strides[i] < 0) low[i] = -strides[i] * (dims[i] - 1);
      first -= low[i];
    }
    const T* from = static_cast<const T*>(source) + first;
    return CopyByAxis(parallel, from, dims, static_cast<T*>(destination), T{},
                      [&](int axis, int64_t index) { return low[axis] + index * strides[axis]; });
  });
}

}  // namespace msrt::reference
