// Reading images between pixels, as nodes: for gradients by composition. Along each axis a position
// becomes a few pixels with weights; a value is the sum over all combinations of them.
#pragma once

#include "ops/grad_builder.h"

namespace msrt {

// One pixel of an axis for each position: its index (i64) and its weight (kNoValue: 1). The dims of
// both broadcast with those of other axes.
struct PixelTap {
  ValueId pixel, weight;
};

// One dim of `v` as a scalar of the element type of `like`.
ValueId ExtentOf(GradBuilder& g, ValueId v, int axis, ValueId like);

// The whole part of `position` as i64, which has no gradient.
ValueId WholePart(GradBuilder& g, ValueId position);
// `tap` with a pixel inside the axis, and a weight of zero where it was outside. `extent` is i64.
PixelTap ZeroOutside(GradBuilder& g, PixelTap tap, ValueId extent, ValueId like);
// The two neighbours of a position; those outside count as zero.
std::vector<PixelTap> LinearTaps(GradBuilder& g, ValueId position, ValueId extent);

// The values [positions..., channels] of all combinations of taps, one for each. `images` is [all
// pixels of all images, channels]; `first` (i64) is the first pixel of the image of a position, and
// `extents` (i64) are those of the axes.
std::vector<ValueId> WeightedPixels(GradBuilder& g, ValueId images, ValueId first,
                                    const std::vector<std::vector<PixelTap>>& axes,
                                    const std::vector<ValueId>& extents);
ValueId SumOf(GradBuilder& g, const std::vector<ValueId>& values);

}  // namespace msrt
