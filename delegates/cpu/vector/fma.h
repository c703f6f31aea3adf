// Fused multiply-adds of vectors, with the same bits on every processor: where there is no
// instruction, the result is computed in double and rounded once.
#pragma once

#include <cstdint>

#include "delegates/cpu/vector/vector.h"
#if defined(__FMA__)
#include <immintrin.h>
#endif

namespace msrt::cpu::MSRT_CPU_ISA {

// The product is exact in double. The sum is rounded to odd, so that rounding it again to f32 gives
// what rounding it once would: 53 bits are more than two beyond 24.
inline float FusedMultiplyAdd(float a, float b, float c) {
#if defined(__FP_FAST_FMAF) || defined(__FMA__)
  return __builtin_fmaf(a, b, c);
#else
  const double product = static_cast<double>(a) * static_cast<double>(b),
               addend = static_cast<double>(c), sum = product + addend;
  const double part = sum - product, error = (product - (sum - part)) + (addend - part);
  auto bits = __builtin_bit_cast(int64_t, sum);
  constexpr int64_t kInfinity = int64_t{0x7ff} << 52;
  const bool inexact = error != 0 && (bits & kInfinity) != kInfinity && (bits & 1) == 0;
  if (inexact) bits += (error > 0) == (sum > 0) ? 1 : -1;
  return static_cast<float>(__builtin_bit_cast(double, bits));
#endif
}

// a * b + c in every lane.
template <int L>
inline __attribute__((always_inline)) Vector<L> Fma(Vector<L> a, Vector<L> b, Vector<L> c) {
#if defined(__AVX512F__)
  if constexpr (L == 16) return _mm512_fmadd_ps(a, b, c);
#endif
#if defined(__FMA__)
  if constexpr (L == 8) return _mm256_fmadd_ps(a, b, c);
  if constexpr (L == 4) return _mm_fmadd_ps(a, b, c);
#endif
  if constexpr (L == 1) {
    return FusedMultiplyAdd(a, b, c);
  } else {
    for (int l = 0; l < L; ++l) c[l] = FusedMultiplyAdd(a[l], b[l], c[l]);
    return c;
  }
}

}  // namespace msrt::cpu::MSRT_CPU_ISA
