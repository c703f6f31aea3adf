// The language of our kernels: one source for nvcc and for the host compiler. A kernel file
// (kernels/*.cu) includes this header and nothing of CUDA, of core or of the standard library that
// nvcc could not compile for a GPU. nvcc makes the fatbin of it; g++ -x c++ makes functions that
// the emulation of the tests finds by name and runs thread by thread.
//
//   KERNEL(scale, const float* x, float* y, int n) {
//     const int i = blockIdx.x * blockDim.x + threadIdx.x;
//     if (i < n) y[i] = 2 * x[i];
//   }
//
// What both forms have, beside plain C++20:
//  - KERNEL(name, arguments...) and BOUNDED_KERNEL(max_threads, name, arguments...): a kernel,
//    found by `name`, which must be unique in the folder. Arguments are scalars, pointers to device
//    memory and plain structs of them, passed by value.
//  - DEVICE: before a helper function. UNROLL: before a loop.
//  - threadIdx, blockIdx, blockDim, gridDim; warpSize. __shared__ T x[N]; DYNAMIC_SHARED(T, x).
//  - __syncthreads(), __syncthreads_or/and/count(predicate), __syncwarp(), __threadfence().
//  - __shfl_sync, __shfl_up_sync, __shfl_down_sync, __shfl_xor_sync, __ballot_sync, __any_sync,
//    __all_sync: the mask is kFullMask, so every thread of the warp that has not returned takes
//    part. The value is a number of 4 or 8 bytes.
//  - atomicAdd (float, double, int, unsigned, unsigned long long), atomicMin, atomicMax (int,
//    unsigned), atomicExch, atomicCAS (int, unsigned, unsigned long long).
//  - Half and BFloat16: storage alone. ToFloat and FromFloat<T> have the same bits in both forms.
//  - float2, float4, int2, int4, uint2, uint4 and make_...; bit casts; __popc, __clz, __ffs,
//    __umulhi, __dp4a; min and max of integers; the functions of math.h for float.
//  - LoadPointer(table + i): reads a device pointer that is stored in device memory. Pointers in
//    the arguments need nothing.
//
// Arithmetic. Files are compiled without contraction (nvcc -fmad=false; g++ has no fma to
// contract to), so +, -, *, /, sqrtf and fmaf have the same bits in both forms. These differ:
//   expf, exp2f, logf, log2f, log1pf, expm1f, powf, sinf, cosf, tanf, tanhf, erff, erfcf, ...:
//     within the ulps of CUDA's programming guide (at most 2 for most of them)
//   Approximate: rsqrtf (2 ulp), __expf (2 + |1.16 x| ulp), __logf, __fdividef (2 ulp), __sinf,
//     __cosf, __tanhf, __frcp_rn's faster form __frcp_approx (1 ulp)
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__

#define KERNEL(name, ...) extern "C" __global__ void name(__VA_ARGS__)
#define BOUNDED_KERNEL(max_threads, name, ...) \
  extern "C" __global__ void __launch_bounds__(max_threads) name(__VA_ARGS__)
#define DEVICE __device__ __forceinline__
#define UNROLL _Pragma("unroll")
// One name per file: all declarations of dynamic shared memory are the same memory.
#define DYNAMIC_SHARED(T, name)                                      \
  extern __shared__ __align__(16) unsigned char msrt_shared_bytes[]; \
  T* name = reinterpret_cast<T*>(msrt_shared_bytes)

template <typename T>
DEVICE T* LoadPointer(T* const* address) {
  return *address;
}
DEVICE float __frcp_approx(float x) {
  float y;
  asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE float __tanhf_approx(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

#else
#include "delegates/cuda/kernels/kernel_host.h"
#endif

constexpr unsigned kFullMask = 0xffffffffu;

// ---- 16-bit floats: bits alone, computed with as float

struct alignas(2) Half {
  uint16_t bits;
};
struct alignas(2) BFloat16 {
  uint16_t bits;
};

DEVICE float ToFloat(float x) { return x; }

DEVICE float ToFloat(BFloat16 x) { return __uint_as_float(static_cast<uint32_t>(x.bits) << 16); }

DEVICE float ToFloat(Half x) {
#ifdef __CUDACC__
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
#else
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000) << 16, magnitude = x.bits & 0x7fff;
  if (magnitude >= 0x7c00) {  // infinity, or a NaN, which keeps its payload and becomes quiet
    const uint32_t quiet = magnitude > 0x7c00 ? 0x400000u : 0;
    return __uint_as_float(sign | 0x7f800000u | quiet | (magnitude & 0x3ff) << 13);
  }
  if (magnitude >= 0x400) return __uint_as_float(sign | ((magnitude << 13) + (112u << 23)));
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
  return __uint_as_float(sign | __float_as_uint(subnormal));
#endif
}

template <typename T>
DEVICE T FromFloat(float x);

template <>
DEVICE float FromFloat<float>(float x) {
  return x;
}

// To nearest, ties to even. Every NaN becomes 0x7fff, as in the GPU's own conversion, which only
// sm_80 and later have.
template <>
DEVICE BFloat16 FromFloat<BFloat16>(float x) {
  const uint32_t bits = __float_as_uint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fff};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16)};
}

template <>
DEVICE Half FromFloat<Half>(float x) {
#ifdef __CUDACC__
  Half y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
#else
  const uint32_t bits = __float_as_uint(x), magnitude = bits & 0x7fffffffu;
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  if (magnitude > 0x7f800000u) return {0x7fff};
  // 65520 is the least number that rounds to infinity.
  if (magnitude >= 0x477ff000u) return {static_cast<uint16_t>(sign | 0x7c00)};
  if (magnitude < 0x38800000u) {
    // Below 2^-14 a half counts units of 2^-24: adding 0.5 lets the float's own rounding find them.
    const float units = __uint_as_float(magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (__float_as_uint(units) - 0x3f000000u))};
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1) - (112u << 23);
  return {static_cast<uint16_t>(sign | (rounded >> 13))};
#endif
}
