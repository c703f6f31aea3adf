// Matrix products. Every element is one sum over the depth in ascending order, so its bits do not
// depend on which rows and columns are computed together.
#pragma once

#include <algorithm>
#include <vector>

#include "core/base/parallel_for.h"
#include "delegates/reference/broadcast.h"
#include "delegates/reference/number.h"

namespace msrt::reference {

// One operand as a stack of matrices: the strides between its rows or columns and along the depth.
struct MatrixStack {
  Dims batch, batch_strides;
  int64_t outer = 1, outer_stride = 0, depth_stride = 1;  // outer: rows of A, columns of B

  // `outer_first`: dims end in (outer, depth), otherwise in (depth, outer).
  MatrixStack(const Dims& dims, bool outer_first) {
    if (dims.rank() == 1) return;
    const int at = dims.rank() - 2;
    batch = Dims(std::span<const int64_t>(dims).first(static_cast<size_t>(at)));
    outer = dims[outer_first ? at : at + 1];
    outer_stride = outer_first ? dims[at + 1] : 1;
    depth_stride = outer_first ? 1 : dims[at + 1];
  }
  // A batch stride counts whole matrices of `matrix` elements.
  void BroadcastTo(const Dims& to, int64_t matrix) {
    batch_strides = BroadcastStrides(batch, to);
    for (int64_t& s : batch_strides) s *= matrix;
  }
};

inline Dims BroadcastBatch(const Dims& a, const Dims& b) {
  Dims out = a.rank() > b.rank() ? a : b;
  const Dims& other = a.rank() > b.rank() ? b : a;
  const int shift = out.rank() - other.rank();
  for (int i = 0; i < other.rank(); ++i) {
    if (out[shift + i] == 1) out[shift + i] = other[i];
  }
  return out;
}

// Calls store(index of the output element, sum) for every element of A' B'.
template <typename T, typename Store>
Status MultiplyMatrices(ParallelFor& parallel, const T* a_data, const Dims& a_dims,
                        bool transpose_a, const T* b_data, const Dims& b_dims, bool transpose_b,
                        const Store& store) {
  using Sum = Wide<T>;  // integers wrap modulo 2^64, so the low bits are right for every type
  MatrixStack a(a_dims, !transpose_a), b(b_dims, transpose_b);
  const int64_t depth = transpose_a ? a_dims[a_dims.rank() - 2] : a_dims.back();
  const Dims batch = BroadcastBatch(a.batch, b.batch);
  a.BroadcastTo(batch, a.outer * depth);
  b.BroadcastTo(batch, b.outer * depth);
  const int64_t rows = batch.elements() * a.outer, columns = b.outer;
  if (rows == 0 || columns == 0) return OkStatus();
  const int64_t grain = 1 + (int64_t{1} << 15) / (columns * std::max<int64_t>(depth, 1));
  return ParallelRanges(parallel, rows, grain, [&](int64_t begin, int64_t end) {
    std::vector<Sum> sums(static_cast<size_t>(columns));
    for (int64_t row = begin; row < end; ++row) {
      const T* a_row =
          a_data + OffsetOf(row / a.outer, batch, a.batch_strides) + row % a.outer * a.outer_stride;
      const T* b_matrix = b_data + OffsetOf(row / a.outer, batch, b.batch_strides);
      std::fill(sums.begin(), sums.end(), Sum{0});
      for (int64_t k = 0; k < depth; ++k) {
        const Sum x = ToWide(a_row[k * a.depth_stride]);
        const T* b_row = b_matrix + k * b.depth_stride;
        for (int64_t n = 0; n < columns; ++n)
          sums[static_cast<size_t>(n)] += x * ToWide(b_row[n * b.outer_stride]);
      }
      for (int64_t n = 0; n < columns; ++n) store(row * columns + n, sums[static_cast<size_t>(n)]);
    }
  });
}

}  // namespace msrt::reference
