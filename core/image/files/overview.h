// Half resolution: each pixel of a lower level of a pyramid stands for up to 2 x 2 pixels above it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "core/image/files/image_info.h"

namespace msrt {

enum class OverviewMode {
  kMean,          // of the pixels that are neither no-data nor NaN
  kMostFrequent,  // for classes; the first in raster order among equals
};

struct OverviewRule {
  OverviewMode mode = OverviewMode::kMean;
  DType dtype = DType::kU8;
  std::optional<double> no_data = {};
};

// Halves `rows` x `cols` pixels of one channel, `from_stride` elements per row, into
// ceil(rows / 2) x ceil(cols / 2) pixels.
void Halve(const OverviewRule& rule, const std::byte* from, int64_t from_stride, int64_t rows,
           int64_t cols, std::byte* to, int64_t to_stride);

}  // namespace msrt
