// Kernels for the tests of the emulation itself.
#include "delegates/cuda/kernels/kernel.h"

KERNEL(test_scale, const float* x, float* y, int n, float factor) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = factor * x[i];
}

// One block a row; blockDim.x is a multiple of 32.
KERNEL(test_softmax, const float* x, float* y, int n) {
  __shared__ float parts[32];
  const int warps = static_cast<int>(blockDim.x) / 32, warp = static_cast<int>(threadIdx.x) / 32;
  const float* row = x + static_cast<size_t>(blockIdx.x) * n;
  float largest = -INFINITY;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) {
    largest = fmaxf(largest, row[i]);
  }
  UNROLL for (int lane = 16; lane > 0; lane /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(kFullMask, largest, lane));
  }
  if (threadIdx.x % 32 == 0) parts[warp] = largest;
  __syncthreads();
  for (int w = 0; w < warps; ++w) largest = fmaxf(largest, parts[w]);
  __syncthreads();
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) {
    sum += expf(row[i] - largest);
  }
  UNROLL for (int delta = 16; delta > 0; delta /= 2) sum += __shfl_down_sync(kFullMask, sum, delta);
  if (threadIdx.x % 32 == 0) parts[warp] = sum;
  __syncthreads();
  sum = 0;
  for (int w = 0; w < warps; ++w) sum += parts[w];
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) {
    y[static_cast<size_t>(blockIdx.x) * n + i] = expf(row[i] - largest) / sum;
  }
}

// Reverses blocks of blockDim.x elements through dynamic shared memory; without the barrier where
// `barrier` is 0.
KERNEL(test_reverse, const int* x, int* y, int barrier) {
  DYNAMIC_SHARED(int, tile);
  const unsigned first = blockIdx.x * blockDim.x, last = blockDim.x - 1;
  tile[threadIdx.x] = x[first + threadIdx.x];
  if (barrier) __syncthreads();
  y[first + threadIdx.x] = tile[last - threadIdx.x];
}

KERNEL(test_histogram, const unsigned* x, int n, unsigned* counts) {
  __shared__ unsigned local[16];
  if (threadIdx.x < 16) local[threadIdx.x] = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < static_cast<unsigned>(n);
       i += gridDim.x * blockDim.x) {
    atomicAdd(&local[x[i] % 16], 1u);
  }
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&counts[threadIdx.x], local[threadIdx.x]);
}

KERNEL(test_divergent, int* y, int kind) {
  if (kind == 0) {  // two barriers
    if (threadIdx.x < 5) {
      __syncthreads();
    } else {
      __syncthreads();
    }
  } else if (kind == 1) {  // a barrier without those that returned
    if (threadIdx.x < 5) return;
    __syncthreads();
  } else if (kind == 2) {  // a shuffle that half of the warp misses
    if (threadIdx.x < 5) {
      y[threadIdx.x] = __shfl_sync(kFullMask, 1, 0);
    } else {
      __syncthreads();
    }
  } else {
    y[0] = __shfl_sync(0xffffu, 1, 0);
  }
}

// Votes, shuffles and the order of lanes: results in 8 ints for each thread.
KERNEL(test_warp, int* y) {
  const int lane = static_cast<int>(threadIdx.x % 32), t = static_cast<int>(threadIdx.x);
  int* out = y + t * 8;
  out[0] = static_cast<int>(__ballot_sync(kFullMask, lane % 3 == 0));
  out[1] = __any_sync(kFullMask, lane == 7);
  out[2] = __all_sync(kFullMask, lane < 7);
  out[3] = __shfl_up_sync(kFullMask, lane, 1);
  out[4] = __shfl_down_sync(kFullMask, lane, 3, 8);
  out[5] = __shfl_xor_sync(kFullMask, lane, 5);
  out[6] = __shfl_sync(kFullMask, lane, 2, 4);
  out[7] = __syncthreads_count(t % 2);
}

// Threads return early; the others go on shuffling.
KERNEL(test_early_return, int* y) {
  if (threadIdx.x % 32 >= 20) return;
  y[threadIdx.x] = __popc(__ballot_sync(kFullMask, 1));
}

KERNEL(test_convert, const float* x, Half* h, BFloat16* b, float* from_half, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  h[i] = FromFloat<Half>(x[i]);
  b[i] = FromFloat<BFloat16>(x[i]);
  from_half[i] = ToFloat(h[i]);
}

// y[i] of each table entry += value: device pointers in device memory.
KERNEL(test_table, float* const* table, int n, float value) {
  float* y = LoadPointer(table + blockIdx.x);
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) {
    y[i] += value;
  }
}

struct TestPair {
  const float* a;
  float* sum;
};
KERNEL(test_add, const TestPair pair, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) pair.sum[i] += pair.a[i];
}

// Writes `extra` elements beyond n.
KERNEL(test_overrun, float* y, int n, int extra) {
  for (int i = 0; i < n + extra; ++i) y[i] = 1;
}
