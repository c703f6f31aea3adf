// Products of integers of 16 bits with sums of 32: exact for differences of bytes from their zero
// points, which exceed a byte. The instruction that multiplies pairs and adds the two products
// exists in every x86-64 instruction set.
#include "delegates/cpu/vector/parts.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace msrt::cpu::MSRT_CPU_ISA {
namespace {

#if defined(__AVX512BW__)
using Vector = __m512i;
inline Vector Load(const void* p) { return _mm512_loadu_si512(p); }
inline void Store(void* p, Vector v) { _mm512_storeu_si512(p, v); }
inline Vector Spread(int32_t pair) { return _mm512_set1_epi32(pair); }
inline Vector MultiplyAdd(Vector sum, Vector a, Vector b) {
  return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
}
#elif defined(__AVX2__)
using Vector = __m256i;
inline Vector Load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline void Store(void* p, Vector v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
inline Vector Spread(int32_t pair) { return _mm256_set1_epi32(pair); }
inline Vector MultiplyAdd(Vector sum, Vector a, Vector b) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}
#elif defined(__SSE2__)
using Vector = __m128i;
inline Vector Load(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
inline void Store(void* p, Vector v) { _mm_storeu_si128(static_cast<__m128i*>(p), v); }
inline Vector Spread(int32_t pair) { return _mm_set1_epi32(pair); }
inline Vector MultiplyAdd(Vector sum, Vector a, Vector b) {
  return _mm_add_epi32(sum, _mm_madd_epi16(a, b));
}
#else
struct Vector {
  int16_t pair[2];
};
static_assert(sizeof(Vector) == sizeof(int32_t));
inline Vector Load(const void* p) { return *static_cast<const Vector*>(p); }
inline void Store(void* p, Vector v) { *static_cast<Vector*>(p) = v; }
inline Vector Spread(int32_t pair) { return __builtin_bit_cast(Vector, pair); }
inline Vector MultiplyAdd(Vector sum, Vector a, Vector b) {
  const int32_t products = a.pair[0] * b.pair[0] + a.pair[1] * b.pair[1];
  return __builtin_bit_cast(Vector,
                            __builtin_bit_cast(uint32_t, sum) + static_cast<uint32_t>(products));
}
#endif

constexpr int kVectors =
    kPanelColumns * static_cast<int>(sizeof(int32_t)) / static_cast<int>(sizeof(Vector));

template <int Rows>
void Tile(const int16_t* a, int64_t a_step, const int16_t* b, int64_t pairs, int32_t* sums) {
  Vector sum[Rows][kVectors] = {};
  for (int64_t p = 0; p < pairs; ++p) {
    Vector columns[kVectors];
    for (int v = 0; v < kVectors; ++v)
      columns[v] =
          Load(reinterpret_cast<const char*>(b + p * 2 * kPanelColumns) + v * sizeof(Vector));
    for (int r = 0; r < Rows; ++r) {
      int32_t pair;
      __builtin_memcpy(&pair, a + r * a_step + 2 * p, sizeof(pair));
      const Vector row = Spread(pair);
      for (int v = 0; v < kVectors; ++v) sum[r][v] = MultiplyAdd(sum[r][v], row, columns[v]);
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < kVectors; ++v)
      Store(reinterpret_cast<char*>(sums + r * kPanelColumns) + v * sizeof(Vector), sum[r][v]);
  }
}

void SumTile(const int16_t* a, int64_t a_step, const int16_t* b, int64_t pairs, int64_t rows,
             int32_t* sums) {
  static constexpr decltype(&Tile<1>) kTiles[kTileRows] = {Tile<1>, Tile<2>, Tile<3>,
                                                           Tile<4>, Tile<5>, Tile<6>};
  kTiles[rows - 1](a, a_step, b, pairs, sums);
}

void ScaleSums(const int32_t* sums, const float* scale, const float* bias, float* y,
               int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(sums[i]) * scale[i] + bias[i];
}

template <typename Byte>
void WidenOf(const void* x, int16_t* y, int64_t count, int32_t zero) {
  const auto* bytes = static_cast<const Byte*>(x);
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<int16_t>(int32_t{bytes[i]} - zero);
}

}  // namespace

void FillIntegerMatMul(Loops* loops) {
  loops->sum_tile = SumTile;
  loops->scale_sums = ScaleSums;
  loops->widen[0] = WidenOf<uint8_t>;
  loops->widen[1] = WidenOf<int8_t>;
}

}  // namespace msrt::cpu::MSRT_CPU_ISA
