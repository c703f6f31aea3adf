// Where the pixels of a model's outputs are in the image: strides, pads and offsets of the layers
// composed from an output back to the image.
#pragma once

#include <vector>

#include "core/run/piece_runner.h"

namespace msrt {

// Index i of an axis has its centre at scale * i + offset, in indices of the image: whole numbers
// are centres of pixels.
struct AxisCoordinates {
  double scale = 1, offset = 0;
  double At(int64_t i) const { return scale * static_cast<double>(i) + offset; }
  // The place of the first border of index 0, where 0 is the border of the image.
  double Begin() const { return offset + (1 - scale) / 2; }
  bool operator==(const AxisCoordinates&) const = default;
};

struct ImageCoordinates {
  AxisCoordinates rows, columns;
  bool operator==(const ImageCoordinates&) const = default;
};

// By output of the graph. The centre of a pixel is that of what its layers read, without weights: a
// valid convolution of 3 x 3 begins at pixel 1. Where layers with different centres meet, those
// that sample the image most finely count, with equal weights. An output (or an op between) whose
// layers do not say where they read covers the image evenly.
std::vector<ImageCoordinates> OutputCoordinates(const PieceRunner& runner);

}  // namespace msrt
