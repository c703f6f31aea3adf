// The matrices of MatMul, Gemm and msrt.FusedMatMul as kernels and libraries see them.
#pragma once

#include "delegates/cuda/rule.h"

namespace msrt::cuda {

inline constexpr size_t kProductBias = 2, kProductResidual = 3;

// C[batch] = A[batch] B[batch]: sizes, and strides in elements. A vector is one row of A or one
// column of B.
struct Product {
  int64_t rows = 1, columns = 1, depth = 1;
  int64_t a_row = 0, a_depth = 1, b_depth = 0, b_column = 1;
  bool transpose_a = false, transpose_b = false;
  Dims batch;                         // of the result
  Dims a_batch, b_batch, bias_batch;  // strides along it; 0 where the operand broadcasts
  bool has_bias = false;
  int64_t bias_row = 0, bias_column = 0;
  double alpha = 1, beta = 1;
};

// Requires concrete types.
Product ProductOf(const OpView& op);

// The product by a kernel of our own, which takes every shape.
Result<std::unique_ptr<BoundKernel>> BindChainProduct(const OpView& op, Gpu& gpu);

}  // namespace msrt::cuda
