// Slices of tensors along one axis: the inputs that a Scan cuts, and the results that loops stack.
#pragma once

#include "core/run/frame.h"

namespace msrt {

struct SliceGeometry {
  int64_t outer, length;
  size_t inner_bytes;
};

Result<SliceGeometry> SliceAlong(DType dtype, const Dims& dims, int64_t axis);
// Copies one slice; the strides are the bytes from one outer index to the next.
void CopySlices(std::byte* to, size_t to_stride, const std::byte* from, size_t from_stride,
                const SliceGeometry& geometry);

// Where a slice goes in the stacked result. `trips`: the number of slices; -1: not known, the
// memory grows by doubling.
struct Stacking {
  int64_t axis = 0;
  int64_t trips = -1;
  bool backwards = false;
};
// Appends result->slice to result->whole. `number` is for error messages.
Status StackSlice(const Stacking& stacking, size_t number, ScannedResult* result, Budget* budget);

}  // namespace msrt
