// The inner loops of PanelConvolution, for two widths of vectors. Each of their files is compiled
// for its instructions, so this header, which they include, has no functions.
#pragma once

#include <cstdint>

namespace msrt::onednn {

inline constexpr int64_t kMaxPanelWidth = 64;

// Some pixels of one row with a panel of output channels.
struct PanelTile {
  const float* x;                       // the first pixel at the first tap
  int64_t x_step;                       // between pixels
  int64_t inputs;                       // channels of a tap
  int64_t block;                        // input channels whose rows of weights follow each other
  int64_t w_block;                      // between blocks
  const float* w;                       // the panel at the first tap
  int64_t taps[3], x_tap[3], w_tap[3];  // numbers of taps along each axis, and their distances
  const float* start;                   // a panel of bias
  const float* residual;                // null: none
  float* y;
  int64_t y_step;   // between pixels, of the residual too
  int64_t columns;  // of the panel that exist
};
using PanelTileFn = void (*)(const PanelTile&);

// By the number of pixels of a tile, less one.
struct PanelTiles {
  const PanelTileFn* by_pixels = nullptr;
  int64_t count = 0;  // 0: there are none for this width
};
PanelTiles WidePanelTiles(int64_t panel);    // AVX-512
PanelTiles NarrowPanelTiles(int64_t panel);  // AVX2 and FMA

}  // namespace msrt::onednn
