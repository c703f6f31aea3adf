// Products of small matrices in tiles whose sums stay in registers.
#pragma once

#include <cstdint>

#include "delegates/cpu/vector/vector.h"

namespace msrt::cpu::MSRT_CPU_ISA {

// A tile of kRowsOfTile times two vectors leaves registers for a row of the other operand.
inline constexpr int kRowsOfTile = kLanes == 16 ? 12 : 6;

// A matrix whose rows are `step` elements apart.
struct Rows {
  const float* at;
  int64_t step;
};
struct Results {
  float* at;
  int64_t step;
};

// R rows and C vectors of the product of `depth` columns of a and rows of b, added to the results
// where `add` is set.
template <int R, int C, int L>
inline __attribute__((always_inline)) void Tile(Rows a, Rows b, Results y, int64_t depth,
                                                bool add) {
  Vector<L> sums[R][C] = {};
  for (int64_t k = 0; k < depth; ++k) {
    Vector<L> row[C];
#pragma GCC unroll 16
    for (int j = 0; j < C; ++j) row[j] = Load<L>(b.at + k * b.step + j * L);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 16
      for (int j = 0; j < C; ++j) sums[i][j] += a.at[i * a.step + k] * row[j];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < C; ++j) {
      float* to = y.at + i * y.step + j * L;
      Store<L>(add ? Load<L>(to) + sums[i][j] : sums[i][j], to);
    }
  }
}

template <int C, int L>
void TileRows(Rows a, Rows b, Results y, int64_t rows, int64_t depth, bool add) {
  const auto below = [&](int64_t i) { return Rows{a.at + i * a.step, a.step}; };
  const auto result = [&](int64_t i) { return Results{y.at + i * y.step, y.step}; };
  int64_t i = 0;
  for (; i + kRowsOfTile <= rows; i += kRowsOfTile)
    Tile<kRowsOfTile, C, L>(below(i), b, result(i), depth, add);
  for (; i + 4 <= rows; i += 4) Tile<4, C, L>(below(i), b, result(i), depth, add);
  for (; i < rows; ++i) Tile<1, C, L>(below(i), b, result(i), depth, add);
}

}  // namespace msrt::cpu::MSRT_CPU_ISA
