// The part of an image job that one rank has: a rectangle of every output, in a grid over its rows
// and columns.
#pragma once

#include "core/graph/tensor.h"
#include "core/region/box.h"

namespace msrt {

struct RankPart {
  int rank = 0;
  int64_t rows = 1, columns = 1;  // of the grid; ranks are numbered row by row

  int64_t ranks() const { return rows * columns; }
  // Returns the part of an output of these dims, [1, channels, rows, columns] or [1, rows,
  // columns]. The parts of all ranks cover it once.
  Box Of(const Dims& output) const;
};

// The part of a box in memory that is inside `inner`. `*strides` belong to the result. Requires
// a plain view of `box`.
TensorView CutView(const TensorView& view, const Box& box, const Box& inner, Dims* strides);

}  // namespace msrt
