// A tensor as lines along one axis, for kernels that work on a line at a time, and the check of
// axes that are inputs.
#pragma once

#include <cstdint>

#include "core/base/dims.h"
#include "core/base/status.h"

namespace msrt::reference {

// Returns a possibly negative axis as a non-negative one. Inference refuses bad attributes, but an
// axis that is an input is known only here.
inline Result<int> CheckedAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    return InvalidArgument("axis = ", axis, ", must be in [", -rank, ", ", rank - 1, "] for rank ",
                           rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// The elements that differ only along the axis make up a line: `count` of them, `inner` apart.
struct Lines {
  int64_t outer, count, inner;  // extents before, along and after the axis

  Lines(const Dims& dims, int axis)
      : outer(dims.product(0, axis)),
        count(dims[axis]),
        inner(dims.product(axis + 1, dims.rank())) {}
  int64_t lines() const { return outer * inner; }
  // Returns the offset of the first element of a line. Requires line < lines().
  int64_t First(int64_t line) const { return line / inner * count * inner + line % inner; }
};

}  // namespace msrt::reference
