// A part: the memory that holds a box of a value while a piece is bound.
#pragma once

#include "core/bind/binding.h"
#include "core/region/box.h"

namespace msrt {

struct Part {
  DType dtype = DType::kNone;
  Box box;
  TensorState state;
  Location place;  // kArena: until memory is planned, `index` is the number of a block
  Dims strides;    // in elements; see msrt_strides

  Dims dims() const { return box.dims(); }
  bool is_dense() const;
};

// A part with dense strides.
Part DensePart(DType dtype, const Box& box, TensorState state, const Location& place);

// The part of `whole` that holds `box`, which is inside it. kUnsupported if it cannot be addressed:
// elements of less than a byte, or channels inside a block.
Result<Part> SubPart(const Part& whole, const Box& box);

}  // namespace msrt
