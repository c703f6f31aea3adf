#include "core/bind/part.h"

namespace msrt {

bool Part::is_dense() const {
  const Dims extents = dims(), dense = DenseStrides(state.layout, extents);
  for (int d = 0; d < extents.rank(); ++d) {
    const int64_t block = d == 1 ? BlockOf(state.layout) : 1;
    if (extents[d] > block && strides[d] != dense[d]) return false;
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
    const int64_t from = box[d].begin - whole.box[d].begin;
    const int64_t block = d == 1 ? BlockOf(whole.state.layout) : 1;
    if (from % block != 0 || (box[d].size() % block != 0 && box[d].end != whole.box[d].end)) {
      return Unsupported("channels ", box[d], " of ", whole.box[d], " divide a block of ", block,
                         " channels; cut at multiples of ", block);
    }
    offset += from / block * whole.strides[d];
  }
  const size_t bytes = BytesOf(whole.dtype, offset);
  if (part.place.kind == Location::kConstant) part.place.data += bytes;
  else part.place.offset += bytes;
  return part;
}

}  // namespace msrt
