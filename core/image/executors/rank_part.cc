#include "core/image/executors/rank_part.h"

namespace msrt {
namespace {

Interval ShareOf(int64_t extent, int64_t index, int64_t count) {
  return {extent * index / count, extent * (index + 1) / count};
}

}  // namespace

Box RankPart::Of(const Dims& output) const {
  Box box = Box::Whole(output);
  const int last = box.rank() - 1;
  box[last - 1] = ShareOf(output[last - 1], rank / columns, rows);
  box[last] = ShareOf(output[last], rank % columns, columns);
  return box;
}

TensorView CutView(const TensorView& view, const Box& box, const Box& inner, Dims* strides) {
  *strides = view.strides != nullptr ? Dims({view.strides, static_cast<size_t>(box.rank())})
                                     : RowMajorStrides(view.dims);
  int64_t offset = 0;
  for (int d = 0; d < box.rank(); ++d) offset += (inner[d].begin - box[d].begin) * (*strides)[d];
  TensorView part = view;
  part.dims = inner.dims();
  part.strides = strides->begin();
  part.data = static_cast<std::byte*>(view.data) + BytesOf(view.dtype, offset);
  return part;
}

}  // namespace msrt
