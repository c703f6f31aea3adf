// Convolutions and products by chains of fused multiply-adds. Vectors go along output channels and
// columns, never along a chain, so the bits of an element depend neither on the width of vectors
// nor on the tile it is in.
#include <utility>

#include "delegates/cpu/vector/fma.h"
#include "delegates/cpu/vector/parts.h"

namespace msrt::cpu::MSRT_CPU_ISA {
namespace {

constexpr int kVectors = 2;  // of a row of a tile
constexpr int kPanel = kVectors * kLanes;
// Sums of kMaxRows times kVectors vectors leave registers for a row of weights and one input.
constexpr int kMaxRows = kLanes == 16 ? 12 : kLanes == 8 ? 6 : 4;

template <int C>
struct Row {
  Vector<kLanes> part[C];
};

// `columns` floats of a row; the rest is zero.
template <int C>
inline __attribute__((always_inline)) Row<C> LoadRow(const float* from, int64_t columns) {
  Row<C> row;
  if (columns >= C * kLanes) {
    for (int j = 0; j < C; ++j) row.part[j] = Load<kLanes>(from + j * kLanes);
    return row;
  }
  float few[C * kLanes] = {};
  for (int64_t i = 0; i < columns; ++i) few[i] = from[i];
  for (int j = 0; j < C; ++j) row.part[j] = Load<kLanes>(few + j * kLanes);
  return row;
}
template <int C>
inline __attribute__((always_inline)) void StoreRow(const Row<C>& row, float* to, int64_t columns) {
  if (columns >= C * kLanes) {
    for (int j = 0; j < C; ++j) Store<kLanes>(row.part[j], to + j * kLanes);
    return;
  }
  float few[C * kLanes];
  for (int j = 0; j < C; ++j) Store<kLanes>(row.part[j], few + j * kLanes);
  for (int64_t i = 0; i < columns; ++i) to[i] = few[i];
}

// Rows i of the input as sums of a pointer and a multiple of the step that one address can have: a
// pointer for each row would not fit into registers.
template <int R>
struct InputRows {
  static constexpr int kGroups = (R + 2) / 3;
  const char* group[kGroups];
  int64_t step;  // bytes

  inline __attribute__((always_inline)) float At(int row, int64_t k) const {
    float value;
    __builtin_memcpy(&value, group[row / 3] + row % 3 * step + k * int64_t{sizeof(float)},
                     sizeof value);
    return value;
  }
  // Keeps the compiler from computing one pointer for each row.
  inline __attribute__((always_inline)) void Advance(int64_t k) {
#pragma GCC unroll 8
    for (int g = 0; g < kGroups; ++g) {
      group[g] += k * int64_t{sizeof(float)};
      asm("" : "+r"(group[g]));
    }
  }
};

template <int R, int C, int Unroll>
inline __attribute__((always_inline)) void AddTerms(InputRows<R>* x, const float** w,
                                                    Row<C> (&sums)[R]) {
#pragma GCC unroll 4
  for (int k = 0; k < Unroll; ++k) {
    Row<C> weights;
    for (int j = 0; j < C; ++j) weights.part[j] = Load<kLanes>(*w + k * kPanel + j * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const Vector<kLanes> input = Broadcast<kLanes>(x->At(i, k));
#pragma GCC unroll 2
      for (int j = 0; j < C; ++j)
        sums[i].part[j] = Fma<kLanes>(input, weights.part[j], sums[i].part[j]);
    }
  }
  x->Advance(Unroll);
  *w += Unroll * kPanel;
}

// Keeps NaN.
inline __attribute__((always_inline)) Vector<kLanes> Clamp(Vector<kLanes> x, float low,
                                                           float high) {
  const Vector<kLanes> lows = Broadcast<kLanes>(low), highs = Broadcast<kLanes>(high);
  x = x < lows ? lows : x;
  return x > highs ? highs : x;
}

template <int R, int C>
void Tile(const ChainTile& t, int64_t first) {
  Row<C> sums[R];
  const float* from = t.y + first * t.y_step;
  if (!t.begins) {
    for (int i = 0; i < R; ++i) sums[i] = LoadRow<C>(from + i * t.y_step, t.columns);
  } else {
    const Row<C> start = t.start == nullptr ? Row<C>{} : LoadRow<C>(t.start, t.columns);
    for (int i = 0; i < R; ++i) sums[i] = start;
  }
  for (int64_t r = 0; r < t.run_count; ++r) {
    const ChainRun& run = t.runs[r];
    InputRows<R> x;
    x.step = t.x_step * int64_t{sizeof(float)};
    for (int g = 0; g < InputRows<R>::kGroups; ++g)
      x.group[g] = reinterpret_cast<const char*>(t.x + run.x_offset + (first + 3 * g) * t.x_step);
    const float* w = t.w + run.w_row * kPanel;
    int64_t k = run.count;
    for (; k >= 4; k -= 4) AddTerms<R, C, 4>(&x, &w, sums);
    for (; k > 0; --k) AddTerms<R, C, 1>(&x, &w, sums);
  }
  float* to = t.y + first * t.y_step;
  if (t.ends) {
    const Row<C> addend = t.addend == nullptr ? Row<C>{} : LoadRow<C>(t.addend, t.columns);
    for (int i = 0; i < R; ++i) {
      Row<C> residual{};
      if (t.residual != nullptr)
        residual = LoadRow<C>(t.residual + (first + i) * t.residual_step, t.columns);
      for (int j = 0; j < C; ++j) {
        Vector<kLanes>& sum = sums[i].part[j];
        if (t.addend != nullptr) sum = sum + addend.part[j];
        if (t.residual != nullptr) sum = sum + residual.part[j];
        sum = Clamp(sum, t.low, t.high);
      }
    }
  }
  for (int i = 0; i < R; ++i) StoreRow<C>(sums[i], to + i * t.y_step, t.columns);
}

using TileFunction = void (*)(const ChainTile&, int64_t first);
// By the number of rows less one.
template <int C, typename Rows>
struct TilesOf;
template <int C, int... R>
struct TilesOf<C, std::integer_sequence<int, R...>> {
  static constexpr TileFunction kTiles[] = {Tile<R + 1, C>...};
};
template <int C>
using Tiles = TilesOf<C, std::make_integer_sequence<int, kMaxRows>>;

// A product of matrices and nothing else, as Winograd's convolution has them: short chains, of
// which the general tile would take a quarter more time.
template <int R>
void ProductTile(const ChainTile& t, int64_t first) {
  Vector<kLanes> sums[R][kVectors] = {};
  const float* const x = t.x + t.runs[0].x_offset + first * t.x_step;
  const float* const w = t.w + t.runs[0].w_row * kPanel;
  const int64_t step = t.x_step, count = t.runs[0].count;
  for (int64_t k = 0; k < count; ++k) {
    Vector<kLanes> weights[kVectors];
#pragma GCC unroll 16
    for (int j = 0; j < kVectors; ++j) weights[j] = Load<kLanes>(w + k * kPanel + j * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const Vector<kLanes> input = Broadcast<kLanes>(x[i * step + k]);
#pragma GCC unroll 16
      for (int j = 0; j < kVectors; ++j) sums[i][j] = Fma<kLanes>(input, weights[j], sums[i][j]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kVectors; ++j)
      Store<kLanes>(sums[i][j], t.y + (first + i) * t.y_step + j * kLanes);
  }
}

template <typename Rows>
struct ProductTilesOf;
template <int... R>
struct ProductTilesOf<std::integer_sequence<int, R...>> {
  static constexpr TileFunction kTiles[] = {ProductTile<R + 1>...};
};

const TileFunction* TilesFor(const ChainTile& t) {
  const bool is_product =
      t.run_count == 1 && t.begins && !t.ends && t.start == nullptr && t.columns == kPanel;
  if (is_product) return ProductTilesOf<std::make_integer_sequence<int, kMaxRows>>::kTiles;
  return t.columns > kLanes ? Tiles<kVectors>::kTiles : Tiles<1>::kTiles;
}

// Rows are divided into tiles of about equal height.
void Chains(const ChainTile& t) {
  const int64_t tiles = (t.rows + kMaxRows - 1) / kMaxRows;
  const TileFunction* const by_rows = TilesFor(t);
  int64_t first = 0;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t end = t.rows * (i + 1) / tiles;
    by_rows[end - first - 1](t, first);
    first = end;
  }
}

// ---- gradients of weights -----------------------------------------------------------------------

// Rows are neighbours in x, terms are x_step apart: one pointer serves all rows.
template <int R>
void WeightTile(const WeightChainTile& t, int64_t first) {
  Row<kVectors> sums[R];
  float* const to = t.y + first * t.y_step;
  for (int i = 0; i < R; ++i)
    sums[i] = t.begins ? Row<kVectors>{} : LoadRow<kVectors>(to + i * t.y_step, kPanel);
  for (int64_t r = 0; r < t.run_count; ++r) {
    const float* x = t.x + t.runs[r].x_offset + first;
    const float* w = t.w + t.runs[r].w_row * kPanel;
    for (int64_t k = t.runs[r].count; k > 0; --k, x += t.x_step, w += kPanel) {
      Row<kVectors> weights;
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) weights.part[j] = Load<kLanes>(w + j * kLanes);
#pragma GCC unroll 16
      for (int i = 0; i < R; ++i) {
        const Vector<kLanes> input = Broadcast<kLanes>(x[i]);
#pragma GCC unroll 2
        for (int j = 0; j < kVectors; ++j)
          sums[i].part[j] = Fma<kLanes>(input, weights.part[j], sums[i].part[j]);
      }
    }
  }
  for (int i = 0; i < R; ++i) StoreRow<kVectors>(sums[i], to + i * t.y_step, kPanel);
}

template <typename Rows>
struct WeightTilesOf;
template <int... R>
struct WeightTilesOf<std::integer_sequence<int, R...>> {
  static constexpr void (*kTiles[])(const WeightChainTile&, int64_t) = {WeightTile<R + 1>...};
};

void WeightChains(const WeightChainTile& t) {
  const int64_t tiles = (t.rows + kMaxRows - 1) / kMaxRows;
  int64_t first = 0;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t end = t.rows * (i + 1) / tiles;
    WeightTilesOf<std::make_integer_sequence<int, kMaxRows>>::kTiles[end - first - 1](t, first);
    first = end;
  }
}

// ---- one input channel for each output channel --------------------------------------------------

template <int L, int P>
inline __attribute__((always_inline)) void DepthwisePixels(const DepthwiseRow& d, int64_t first,
                                                           int64_t channel) {
  Vector<L> sums[P];
  const Vector<L> start = d.start == nullptr ? Vector<L>{} : Load<L>(d.start + channel);
  for (int p = 0; p < P; ++p) sums[p] = start;
  for (int64_t r = 0; r < d.run_count; ++r) {
    const ChainRun& run = d.runs[r];
    const float* x = d.x + run.x_offset + first * d.x_step + channel;
    const float* w = d.w + run.w_row * d.channels + channel;
    for (int p = 0; p < P; ++p) sums[p] = Fma<L>(Load<L>(x + p * d.x_step), Load<L>(w), sums[p]);
  }
  for (int p = 0; p < P; ++p) {
    Vector<L> sum = sums[p];
    if (d.residual != nullptr)
      sum = sum + Load<L>(d.residual + (first + p) * d.residual_step + channel);
    const Vector<L> lows = Broadcast<L>(d.low), highs = Broadcast<L>(d.high);
    sum = sum < lows ? lows : sum;
    sum = sum > highs ? highs : sum;
    Store<L>(sum, d.y + (first + p) * d.y_step + channel);
  }
}

template <int P>
void DepthwiseTile(const DepthwiseRow& d, int64_t first) {
  int64_t c = 0;
  for (; c + kLanes <= d.channels; c += kLanes) DepthwisePixels<kLanes, P>(d, first, c);
  if constexpr (kLanes > 4) {
    for (; c + 4 <= d.channels; c += 4) DepthwisePixels<4, P>(d, first, c);
  }
  for (; c < d.channels; ++c) DepthwisePixels<1, P>(d, first, c);
}

void Depthwise(const DepthwiseRow& d) {
  constexpr int kPixels = 8;
  int64_t first = 0;
  for (; first + kPixels <= d.rows; first += kPixels) DepthwiseTile<kPixels>(d, first);
  for (; first + 2 <= d.rows; first += 2) DepthwiseTile<2>(d, first);
  for (; first < d.rows; ++first) DepthwiseTile<1>(d, first);
}

}  // namespace

void FillChains(Loops* loops) {
  loops->chains = Chains;
  loops->chain_panel = kPanel;
  loops->chain_rows = kMaxRows;
  loops->weight_chains = WeightChains;
  loops->depthwise = Depthwise;
}

}  // namespace msrt::cpu::MSRT_CPU_ISA
