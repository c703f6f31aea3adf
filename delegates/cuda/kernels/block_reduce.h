// One value from those of all threads of a block: within warps by shuffles, between warps through
// shared memory. The order of the joins depends on the size of the block alone.
#pragma once

#include "delegates/cuda/kernels/kernel.h"

namespace msrt::cuda {

template <typename W, typename Join>
DEVICE W WarpReduce(W value, Join join) {
  for (int distance = 16; distance > 0; distance /= 2)
    value = join(value, __shfl_xor_sync(kFullMask, value, distance));
  return value;
}

// Every thread gets the result. blockDim.x is a multiple of 32, at most 1024; all threads call.
template <typename W, typename Join>
DEVICE W BlockReduce(W value, Join join) {
  __shared__ W of_warps[32];
  value = WarpReduce(value, join);
  const unsigned warps = blockDim.x / 32;
  if (warps == 1) return value;
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  W result = of_warps[0];
  for (unsigned w = 1; w < warps; ++w) result = join(result, of_warps[w]);
  // Before the next call writes there.
  __syncthreads();
  return result;
}

}  // namespace msrt::cuda
