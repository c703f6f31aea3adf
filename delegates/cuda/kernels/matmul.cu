// Products without libraries, for exact results and where cuBLASLt is missing: every element is a
// chain of fused multiply-adds, in f32 or, for f64, in f64, along the depth, which makes it the
// same in any tile, piece and batch. A block computes 64x64 elements from slices of 16 along the
// depth in shared memory; each of its 256 threads has 4x4 of them in registers.
#include "delegates/cuda/kernels/epilogue.h"
#include "delegates/cuda/kernels/index.h"

namespace msrt::cuda {
namespace {

constexpr int kTile = 64, kSlice = 16, kPerThread = 4;

template <typename W>
DEVICE void MatMul(const MatMulArgs& args) {
  __shared__ W a_slice[kSlice][kTile + 1], b_slice[kSlice][kTile + 1];
  const int thread_row = threadIdx.x / 16, thread_column = threadIdx.x % 16;
  for (uint32_t batch = blockIdx.z; batch < args.batches; batch += gridDim.z) {
    uint32_t rest = batch;
    int64_t a_first = 0, b_first = 0, bias_first = 0;
    for (int d = args.batch_rank - 1; d >= 0; --d) {
      const uint32_t x = Split(&rest, args.batch[d]);
      a_first += x * args.a_batch[d];
      b_first += x * args.b_batch[d];
      bias_first += x * args.bias_batch[d];
    }
    const uint32_t row0 = blockIdx.y * kTile, column0 = blockIdx.x * kTile;
    W sum[kPerThread][kPerThread] = {};
    for (uint32_t k0 = 0; k0 < args.depth; k0 += kSlice) {
      for (int e = threadIdx.x; e < kSlice * kTile; e += 256) {
        // Neighbouring threads read neighbours in memory, whichever way the matrix lies.
        const int a_k = args.a_depth == 1 ? e % kSlice : e / kTile;
        const int a_r = args.a_depth == 1 ? e / kSlice : e % kTile;
        const bool a_in = row0 + a_r < args.rows && k0 + a_k < args.depth;
        a_slice[a_k][a_r] =
            a_in ? LoadReal<W>(args.type, args.a,
                               a_first + (row0 + a_r) * args.a_row + (k0 + a_k) * args.a_depth)
                 : W{0};
        const int b_k = args.b_depth == 1 ? e % kSlice : e / kTile;
        const int b_c = args.b_depth == 1 ? e / kSlice : e % kTile;
        const bool b_in = column0 + b_c < args.columns && k0 + b_k < args.depth;
        b_slice[b_k][b_c] =
            b_in
                ? LoadReal<W>(args.type, args.b,
                              b_first + (k0 + b_k) * args.b_depth + (column0 + b_c) * args.b_column)
                : W{0};
      }
      __syncthreads();
      const uint32_t depth = args.depth - k0 < kSlice ? args.depth - k0 : kSlice;
      for (uint32_t k = 0; k < depth; ++k) {
        W a[kPerThread], b[kPerThread];
        UNROLL for (int i = 0; i < kPerThread; ++i) {
          a[i] = a_slice[k][thread_row + 16 * i];
          b[i] = b_slice[k][thread_column + 16 * i];
        }
        UNROLL for (int i = 0; i < kPerThread; ++i) {
          UNROLL for (int j = 0; j < kPerThread; ++j) sum[i][j] =
              FusedMultiplyAdd(a[i], b[j], sum[i][j]);
        }
      }
      __syncthreads();
    }
    UNROLL for (int i = 0; i < kPerThread; ++i) {
      UNROLL for (int j = 0; j < kPerThread; ++j) {
        const uint32_t row = row0 + thread_row + 16 * i, column = column0 + thread_column + 16 * j;
        if (row < args.rows && column < args.columns) {
          const int64_t at = (int64_t{batch} * args.rows + row) * args.columns + column;
          const int64_t bias = bias_first + row * args.end.bias_row + column * args.end.bias_column;
          StoreReal<W>(args.type, args.c, at,
                       Finish<W>(args.end, args.type, sum[i][j], at, true, bias));
        }
      }
    }
  }
}

}  // namespace

BOUNDED_KERNEL(256, matmul_chain_f32, MatMulArgs args) { MatMul<float>(args); }
BOUNDED_KERNEL(256, matmul_chain_f64, MatMulArgs args) { MatMul<double>(args); }

}  // namespace msrt::cuda
