// One tile of PanelConvolution, for the vectors of the file that includes it.
#pragma once

#include <cstring>
#include <utility>

#include "delegates/onednn/panel_tiles.h"

namespace msrt::onednn {
namespace {  // each file has its own instructions

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#else
constexpr int kLanes = 8;
#endif
typedef float Vector __attribute__((vector_size(kLanes * sizeof(float))));

inline __attribute__((always_inline)) Vector Load(const float* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
inline __attribute__((always_inline)) void Store(Vector v, float* to) {
  std::memcpy(to, &v, sizeof v);
}

// P pixels with V vectors of output channels.
template <int V, int P>
void Tile(const PanelTile& t) {
  constexpr int kPanel = V * kLanes;
  Vector sums[P][V];
  for (int p = 0; p < P; ++p) {
    for (int v = 0; v < V; ++v) sums[p][v] = Load(t.start + v * kLanes);
  }
  for (int64_t a = 0; a < t.taps[0]; ++a) {
    for (int64_t b = 0; b < t.taps[1]; ++b) {
      for (int64_t c = 0; c < t.taps[2]; ++c) {
        const float* x = t.x + a * t.x_tap[0] + b * t.x_tap[1] + c * t.x_tap[2];
        const float* w = t.w + a * t.w_tap[0] + b * t.w_tap[1] + c * t.w_tap[2];
        for (int64_t k = 0, left = t.block; k < t.inputs; ++k, w += kPanel) {
          if (left-- == 0) {
            w += t.w_block - t.block * kPanel;
            left = t.block - 1;
          }
          Vector row[V];
#pragma GCC unroll 4
          for (int v = 0; v < V; ++v) row[v] = Load(w + v * kLanes);
#pragma GCC unroll 8
          for (int p = 0; p < P; ++p) {
            const Vector input = x[p * t.x_step + k] - Vector{};
#pragma GCC unroll 4
            for (int v = 0; v < V; ++v) sums[p][v] += input * row[v];
          }
        }
      }
    }
  }
  for (int p = 0; p < P; ++p) {
    float few[kPanel] = {};  // of a panel with fewer columns
    const bool is_full = t.columns >= kPanel;
    const size_t bytes = static_cast<size_t>(t.columns) * sizeof(float);
    if (t.residual != nullptr) {
      const float* z = t.residual + p * t.y_step;
      if (!is_full) std::memcpy(few, z, bytes);
      for (int v = 0; v < V; ++v) sums[p][v] += Load((is_full ? z : few) + v * kLanes);
    }
    float* const y = t.y + p * t.y_step;
    for (int v = 0; v < V; ++v) Store(sums[p][v], (is_full ? y : few) + v * kLanes);
    if (!is_full) std::memcpy(y, few, bytes);
  }
}

template <int V, typename Pixels>
struct TilesOf;
template <int V, int... P>
struct TilesOf<V, std::integer_sequence<int, P...>> {
  static constexpr PanelTileFn kTiles[] = {Tile<V, P + 1>...};
};
// Tiles of up to P pixels: as many as leave registers for a row of weights and an input.
template <int V, int P>
constexpr PanelTiles kTilesOf{TilesOf<V, std::make_integer_sequence<int, P>>::kTiles, P};

}  // namespace
}  // namespace msrt::onednn
