#include "delegates/cuda/product.h"

#include <algorithm>

#include "delegates/cuda/spaces.h"

namespace msrt::cuda {
namespace {

Dims WithoutLast(const Dims& dims, int count) {
  return Dims(std::span<const int64_t>(dims).first(static_cast<size_t>(dims.rank() - count)));
}

}  // namespace

Product ProductOf(const OpView& op) {
  const Dims &a = op.input(0).dims, &b = op.input(1).dims, &y = op.output(0).dims;
  Product p;
  const bool plain = op.op() == "MatMul" && op.domain().empty();
  // Vectors are not transposed.
  p.transpose_a = !plain && op.Int("transA") != 0 && a.rank() > 1;
  p.transpose_b = !plain && op.Int("transB") != 0 && b.rank() > 1;
  if (!plain) p.alpha = op.Float("alpha");
  if (op.op() == "Gemm") p.beta = op.Float("beta");
  const int64_t a_rows = a.rank() > 1 ? a[a.rank() - 2] : 1, a_columns = a.back();
  const int64_t b_rows = b.rank() > 1 ? b[b.rank() - 2] : b.back(),
                b_columns = b.rank() > 1 ? b.back() : 1;
  p.rows = p.transpose_a ? a_columns : a_rows;
  p.depth = p.transpose_a ? a_rows : a_columns;
  p.columns = p.transpose_b ? b_rows : b_columns;
  p.a_row = p.transpose_a ? 1 : a_columns;
  p.a_depth = p.transpose_a ? a_columns : 1;
  p.b_depth = p.transpose_b ? 1 : b_columns;
  p.b_column = p.transpose_b ? b_columns : 1;
  const int own = int{a.rank() > 1} + int{b.rank() > 1};  // dims of a matrix that the result has
  p.batch = WithoutLast(y, std::min(own, y.rank()));
  const auto strides_of = [&](const Dims& dims, int64_t matrix) {
    Dims strides = BroadcastStrides(WithoutLast(dims, std::min(2, dims.rank())), p.batch);
    for (int64_t& s : strides) s *= matrix;
    return strides;
  };
  p.a_batch = strides_of(a, a_rows * a_columns);
  p.b_batch = strides_of(b, b_rows * b_columns);
  p.has_bias = op.has_input(kProductBias) && p.beta != 0;
  p.bias_batch = Dims::Filled(p.batch.rank(), 0);
  if (p.has_bias) {
    const Dims strides = BroadcastStrides(op.input(kProductBias).dims, y);
    for (int d = 0; d < p.batch.rank(); ++d) p.bias_batch[d] = strides[d];
    int next = p.batch.rank();
    if (a.rank() > 1) p.bias_row = strides[next++];
    if (b.rank() > 1) p.bias_column = strides[next];
  }
  return p;
}

}  // namespace msrt::cuda
