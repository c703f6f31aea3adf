// Transposes in tiles that fit the registers, and conversions between float widths.
#include "delegates/cpu/vector/parts.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace msrt::cpu::MSRT_CPU_ISA {
namespace {

template <typename T>
void TransposeEdge(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t rows,
                   int64_t columns) {
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) to[c * to_step + r] = from[r * from_step + c];
  }
}

// 8 by 8 elements of 4 bytes.
#if defined(__AVX2__)
void TransposeTile(const uint32_t* from, int64_t from_step, uint32_t* to, int64_t to_step) {
  const auto* source = reinterpret_cast<const float*>(from);
  auto* target = reinterpret_cast<float*>(to);
  __m256 row[8], pair[8], quad[8];
  // The halves of rows r and r + 4 side by side, so that what remains happens within 128 bits.
  for (int r = 0; r < 4; ++r) {
    row[r] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(source + r * from_step)),
                                  _mm_loadu_ps(source + (r + 4) * from_step), 1);
    row[r + 4] =
        _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(source + r * from_step + 4)),
                             _mm_loadu_ps(source + (r + 4) * from_step + 4), 1);
  }
  for (int h = 0; h < 8; h += 4) {
    pair[h] = _mm256_unpacklo_ps(row[h], row[h + 1]),
    pair[h + 1] = _mm256_unpackhi_ps(row[h], row[h + 1]);
    pair[h + 2] = _mm256_unpacklo_ps(row[h + 2], row[h + 3]),
             pair[h + 3] = _mm256_unpackhi_ps(row[h + 2], row[h + 3]);
    quad[h] = _mm256_shuffle_ps(pair[h], pair[h + 2], 0x44),
    quad[h + 1] = _mm256_shuffle_ps(pair[h], pair[h + 2], 0xee);
    quad[h + 2] = _mm256_shuffle_ps(pair[h + 1], pair[h + 3], 0x44),
             quad[h + 3] = _mm256_shuffle_ps(pair[h + 1], pair[h + 3], 0xee);
  }
  for (int c = 0; c < 8; ++c) _mm256_storeu_ps(target + c * to_step, quad[c]);
}
#else
void TransposeTile(const uint32_t* from, int64_t from_step, uint32_t* to, int64_t to_step) {
  TransposeEdge(from, from_step, to, to_step, 8, 8);
}
#endif
template <typename T>
void TransposeTile(const T* from, int64_t from_step, T* to, int64_t to_step) {
  TransposeEdge(from, from_step, to, to_step, 8, 8);
}

// Tiles of 8 by 8, 64 rows at a time: the lines of `to` that are being filled stay in the first
// cache.
template <typename T>
void TransposeOf(const void* from, int64_t from_step, void* to, int64_t to_step, int64_t rows,
                 int64_t columns) {
  constexpr int64_t kTile = 8, kRows = 64;
  const T* source = static_cast<const T*>(from);
  T* target = static_cast<T*>(to);
  for (int64_t r0 = 0; r0 < rows; r0 += kRows) {
    const int64_t end = r0 + kRows < rows ? r0 + kRows : rows;
    for (int64_t c = 0; c < columns; c += kTile) {
      const int64_t width = c + kTile <= columns ? kTile : columns - c;
      for (int64_t r = r0; r < end; r += kTile) {
        const int64_t height = r + kTile <= end ? kTile : end - r;
        const T* s = source + r * from_step + c;
        T* t = target + c * to_step + r;
        if (width == kTile && height == kTile) TransposeTile(s, from_step, t, to_step);
        else TransposeEdge(s, from_step, t, to_step, height, width);
      }
    }
  }
}

}  // namespace

void FillMovement(Loops* loops) {
  loops->transpose[0] = TransposeOf<uint8_t>;
  loops->transpose[1] = TransposeOf<uint16_t>;
  loops->transpose[2] = TransposeOf<uint32_t>;
  loops->transpose[3] = TransposeOf<uint64_t>;
}

}  // namespace msrt::cpu::MSRT_CPU_ISA
