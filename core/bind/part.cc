#include "core/bind/part.h"

namespace msrt {

bool Part::is_dense() const {
  const Dims extents = dims(), dense = DenseStrides(state.layout, extents);
  for (int d = 0; d < extents.rank(); ++d) {
    const bool blocked = d == 1 && state.layout == Layout::kBlocked8;
    if (extents[d] > (blocked ? 8 : 1) && strides[d] != dense[d]) return false;
  }
  return true;
}

Part DensePart(DType dtype, const Box& box, TensorState state, const Location& place) {
  return {dtype, box, state, place, DenseStrides(state.layout, box.dims())};
}

Result<Part> SubPart(const Part& whole, const Box& box) {
  if (box == whole.box) return whole;
  if (BitsOf(whole.dtype) % 8 != 0)
    return Unsupported("elements of type ", whole.dtype, " cannot be cut");
  Part part = whole;
  part.box = box;
  int64_t offset = 0;
  for (int d = 0; d < box.rank(); ++d) {
    int64_t from = box[d].begin - whole.box[d].begin;
    if (d == 1 && whole.state.layout == Layout::kBlocked8) {
      if (from % 8 != 0 || (box[d].size() % 8 != 0 && box[d].end != whole.box[d].end)) {
        return Unsupported("channels ", box[d], " of ", whole.box[d],
                           " divide a block of 8 channels; cut at multiples of 8");
      }
      from /= 8;
    }
    offset += from * whole.strides[d];
  }
  const size_t bytes = BytesOf(whole.dtype, offset);
  if (part.place.kind == Location::kConstant) part.place.data += bytes;
  else part.place.offset += bytes;
  return part;
}

}  // namespace msrt
