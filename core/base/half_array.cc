#include "core/base/half_array.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace msrt {
namespace {

// The rest of an array, or all of it on machines without the instructions.
template <typename From, typename To>
void ConvertOneByOne(const From* from, To* to, size_t begin, size_t count) {
  for (size_t i = begin; i < count; ++i) to[i] = static_cast<To>(from[i]);
}

#if defined(__x86_64__)
#define MSRT_AVX2 __attribute__((target("avx2,f16c")))

// F16C came before AVX2, so a machine with one has the other; virtual machines may hide either.
bool HasVectors() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  return has;
}

// Vectors of 8: all four conversions run at the speed of memory with them, so AVX-512 would gain
// nothing. Each returns how many elements it converted.
MSRT_AVX2 size_t ConvertVectors(const Half* from, float* to, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(to + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
  return i;
}

MSRT_AVX2 size_t ConvertVectors(const float* from, Half* to, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves =
        _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), halves);
  }
  return i;
}

MSRT_AVX2 size_t ConvertVectors(const BFloat16* from, float* to, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256i bits =
        _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), _mm256_slli_epi32(bits, 16));
  }
  return i;
}

// The instruction of AVX512_BF16 would flush subnormal numbers to zero; this is the arithmetic of
// BFloat16(float).
MSRT_AVX2 __m256i RoundToUpperHalf(__m256 values) {
  const __m256i bits = _mm256_castps_si256(values);
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(values, values, _CMP_UNORD_Q));
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);
}

MSRT_AVX2 size_t ConvertVectors(const float* from, BFloat16* to, size_t count) {
  size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m256i low = RoundToUpperHalf(_mm256_loadu_ps(from + i)),
                  high = RoundToUpperHalf(_mm256_loadu_ps(from + i + 8));
    // Packing works within each half of the vectors; the permutation puts the four parts in order.
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0b11011000);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), packed);
  }
  return i;
}
#endif

template <typename From, typename To>
void Convert(const From* from, To* to, size_t count) {
  size_t done = 0;
#if defined(__x86_64__)
  if (HasVectors()) done = ConvertVectors(from, to, count);
#endif
  ConvertOneByOne(from, to, done, count);
}

}  // namespace

void ConvertArray(const Half* from, float* to, size_t count) { Convert(from, to, count); }
void ConvertArray(const float* from, Half* to, size_t count) { Convert(from, to, count); }
void ConvertArray(const BFloat16* from, float* to, size_t count) { Convert(from, to, count); }
void ConvertArray(const float* from, BFloat16* to, size_t count) { Convert(from, to, count); }

}  // namespace msrt
