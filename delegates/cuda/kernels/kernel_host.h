// Host form of the kernel language (kernel.h): CUDA's keywords and functions as plain C++. Each
// CUDA thread runs on the calling thread as a function or a fiber; barriers and shuffles call the
// block that runs it (kernel_runtime.h), which the tests implement (tests/cuda/block.h). No part of
// the delegate includes this header: only kernel files that are compiled for the host do.
#pragma once

#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "delegates/cuda/kernels/kernel_runtime.h"

namespace msrt::cuda::host {

// ---- warps

inline int LaneOfThread() {
  const Position& p = position;
  return static_cast<int>((p.thread.x + p.block_dim.x * (p.thread.y + p.block_dim.y * p.thread.z)) %
                          32);
}

inline void CheckMask(Site site, unsigned mask) {
  if (mask != 0xffffffffu) running_block->Fail(site, "only full masks are supported");
}

template <typename T>
uint64_t ToWord(T value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  if constexpr (sizeof(T) == 8) return std::bit_cast<uint64_t>(value);
  if constexpr (sizeof(T) == 4) return std::bit_cast<uint32_t>(value);
  if constexpr (sizeof(T) == 2) return std::bit_cast<uint16_t>(value);
  if constexpr (sizeof(T) == 1) return std::bit_cast<uint8_t>(value);
}
template <typename T>
T FromWord(uint64_t word) {
  if constexpr (sizeof(T) == 8) return std::bit_cast<T>(word);
  if constexpr (sizeof(T) == 4) return std::bit_cast<T>(static_cast<uint32_t>(word));
  if constexpr (sizeof(T) == 2) return std::bit_cast<T>(static_cast<uint16_t>(word));
  if constexpr (sizeof(T) == 1) return std::bit_cast<T>(static_cast<uint8_t>(word));
}

// Returns the value of another lane; where that lane does not exist, all bits set (a NaN), since
// the GPU's result is undefined.
template <typename T>
T ShuffleFrom(Site site, unsigned mask, T value, int source) {
  CheckMask(site, mask);
  uint32_t present = 0;
  const uint64_t* values = running_block->ExchangeInWarp(site, ToWord(value), &present);
  return FromWord<T>((present >> source & 1) != 0 ? values[source] : ~uint64_t{0});
}
template <typename T>
T Shuffle(Site site, unsigned mask, T value, int source, int width = 32) {
  const int lane = LaneOfThread();
  return ShuffleFrom(site, mask, value, (lane & ~(width - 1)) | (source & (width - 1)));
}
template <typename T>
T ShuffleUp(Site site, unsigned mask, T value, unsigned delta, int width = 32) {
  const int lane = LaneOfThread(), source = lane - static_cast<int>(delta);
  return ShuffleFrom(site, mask, value, source < (lane & ~(width - 1)) ? lane : source);
}
template <typename T>
T ShuffleDown(Site site, unsigned mask, T value, unsigned delta, int width = 32) {
  const int lane = LaneOfThread(), source = lane + static_cast<int>(delta);
  return ShuffleFrom(site, mask, value, source >= (lane & ~(width - 1)) + width ? lane : source);
}
// A lane beyond its own segment of `width` lanes can only be in an earlier one.
template <typename T>
T ShuffleXor(Site site, unsigned mask, T value, int lane_mask, int width = 32) {
  const int lane = LaneOfThread(), source = lane ^ lane_mask;
  return ShuffleFrom(site, mask, value, source >= (lane & ~(width - 1)) + width ? lane : source);
}
inline unsigned Ballot(Site site, unsigned mask, bool predicate, uint32_t* present) {
  CheckMask(site, mask);
  const uint64_t* values = running_block->ExchangeInWarp(site, predicate, present);
  unsigned votes = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((*present >> lane & 1) != 0 && values[lane] != 0) votes |= 1u << lane;
  }
  return votes;
}
inline unsigned Ballot(Site site, unsigned mask, bool predicate) {
  uint32_t present = 0;
  return Ballot(site, mask, predicate, &present);
}
inline int AnyInWarp(Site site, unsigned mask, bool predicate) {
  return Ballot(site, mask, predicate) != 0;
}
inline int AllInWarp(Site site, unsigned mask, bool predicate) {
  uint32_t present = 0;
  const unsigned votes = Ballot(site, mask, predicate, &present);
  return votes == present;
}
inline void SyncWarp(Site site, unsigned mask = 0xffffffffu) {
  CheckMask(site, mask);
  running_block->SyncWarp(site);
}
inline int CountThreads() {
  const Index3& dim = position.block_dim;
  return static_cast<int>(dim.x * dim.y * dim.z);
}

// ---- atomics: relaxed, as on the GPU. Blocks of other streams run on other threads.

template <typename T, typename Change>
T AtomicChange(T* address, Change change) {
  std::atomic_ref<T> target(*address);
  T old = target.load(std::memory_order_relaxed);
  while (!target.compare_exchange_weak(old, change(old), std::memory_order_relaxed)) {
  }
  return old;
}

}  // namespace msrt::cuda::host

// ---- the language

#define KERNEL(name, ...) BOUNDED_KERNEL(1024, name, __VA_ARGS__)
#define BOUNDED_KERNEL(max_threads, name, ...)                                              \
  static void name(__VA_ARGS__);                                                            \
  static ::msrt::cuda::host::Registration<&name> name##_registration(#name, (max_threads)); \
  static void name(__VA_ARGS__)
#define DEVICE [[maybe_unused]] inline
#define UNROLL
#define __device__
#define __host__
#define __forceinline__ inline
#define __constant__ static const
#define __launch_bounds__(...)
// A block runs on one thread of the host.
#define __shared__ static thread_local
#define DYNAMIC_SHARED(T, name) \
  T* name = static_cast<T*>(::msrt::cuda::host::running_block->dynamic_shared())

#define threadIdx (::msrt::cuda::host::position.thread)
#define blockIdx (::msrt::cuda::host::position.block)
#define blockDim (::msrt::cuda::host::position.block_dim)
#define gridDim (::msrt::cuda::host::position.grid_dim)
constexpr int warpSize = 32;

#define MSRT_SITE (::msrt::cuda::host::Site{__FILE__, __LINE__})
#define __syncthreads() ::msrt::cuda::host::running_block->SyncThreads(MSRT_SITE)
#define __syncthreads_count(p) \
  ::msrt::cuda::host::running_block->SyncThreadsCount(MSRT_SITE, (p) != 0)
#define __syncthreads_or(p) (__syncthreads_count(p) != 0)
#define __syncthreads_and(p) (__syncthreads_count(p) == ::msrt::cuda::host::CountThreads())
#define __syncwarp(...) ::msrt::cuda::host::SyncWarp(MSRT_SITE __VA_OPT__(, ) __VA_ARGS__)
#define __shfl_sync(...) ::msrt::cuda::host::Shuffle(MSRT_SITE, __VA_ARGS__)
#define __shfl_up_sync(...) ::msrt::cuda::host::ShuffleUp(MSRT_SITE, __VA_ARGS__)
#define __shfl_down_sync(...) ::msrt::cuda::host::ShuffleDown(MSRT_SITE, __VA_ARGS__)
#define __shfl_xor_sync(...) ::msrt::cuda::host::ShuffleXor(MSRT_SITE, __VA_ARGS__)
#define __ballot_sync(mask, p) ::msrt::cuda::host::Ballot(MSRT_SITE, mask, (p) != 0)
#define __any_sync(mask, p) ::msrt::cuda::host::AnyInWarp(MSRT_SITE, mask, (p) != 0)
#define __all_sync(mask, p) ::msrt::cuda::host::AllInWarp(MSRT_SITE, mask, (p) != 0)
#define LoadPointer(address) ::LoadPointerFrom(MSRT_SITE, address)

inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence_block() {}

template <typename T>
T* LoadPointerFrom(::msrt::cuda::host::Site site, T* const* address) {
  return static_cast<T*>(const_cast<std::remove_cv_t<T>*>(static_cast<const std::remove_cv_t<T>*>(
      ::msrt::cuda::host::running_block->Translate(site, *address))));
}

// The second operand has the type of the first, as in CUDA's overloads.
template <typename T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return ::msrt::cuda::host::AtomicChange(address,
                                          [&](T old) { return static_cast<T>(old + value); });
}
template <typename T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  return ::msrt::cuda::host::AtomicChange(address,
                                          [&](T old) { return value < old ? value : old; });
}
template <typename T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  return ::msrt::cuda::host::AtomicChange(address,
                                          [&](T old) { return old < value ? value : old; });
}
template <typename T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).exchange(value, std::memory_order_relaxed);
}
template <typename T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  std::atomic_ref<T>(*address).compare_exchange_strong(expected, value, std::memory_order_relaxed);
  return expected;
}

// ---- numbers

inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<uint64_t>(a) * b) >> 32);
}
inline int __dp4a(int a, int b, int c) {
  for (int shift = 0; shift < 32; shift += 8) {
    c += static_cast<int8_t>(a >> shift) * static_cast<int8_t>(b >> shift);
  }
  return c;
}
template <typename T>
const T& __ldg(const T* address) {
  return *address;
}
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frcp_rn(float x) { return 1 / x; }
// Rounds to nearest even and saturates; NaN becomes 0.
inline int __float2int_rn(float x) {
  if (x != x) return 0;
  if (x >= 0x1p31f) return 0x7fffffff;
  if (x <= -0x1p31f) return -0x7fffffff - 1;
  return static_cast<int>(std::nearbyint(x));
}
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
// Approximate on the GPU.
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_approx(float x) { return 1 / x; }
inline float __tanhf_approx(float x) { return std::tanh(x); }

template <typename A, typename B>
requires std::is_integral_v<A> && std::is_integral_v<B> std::common_type_t<A, B> min(A a, B b) {
  const std::common_type_t<A, B> x = a, y = b;
  return y < x ? y : x;
}
template <typename A, typename B>
requires std::is_integral_v<A> && std::is_integral_v<B> std::common_type_t<A, B> max(A a, B b) {
  const std::common_type_t<A, B> x = a, y = b;
  return x < y ? y : x;
}

#define MSRT_VECTOR_TYPES(T, type)                           \
  struct alignas(2 * sizeof(T)) type##2 {                    \
    T x, y;                                                  \
  };                                                         \
  struct alignas(4 * sizeof(T)) type##4 {                    \
    T x, y, z, w;                                            \
  };                                                         \
  inline type##2 make_##type##2(T x, T y) { return {x, y}; } \
  inline type##4 make_##type##4(T x, T y, T z, T w) { return {x, y, z, w}; }
MSRT_VECTOR_TYPES(float, float)
MSRT_VECTOR_TYPES(int, int)
MSRT_VECTOR_TYPES(unsigned, uint)
#undef MSRT_VECTOR_TYPES
