#include "core/image/executors/stream_memory.h"

#include <utility>

#include "core/base/checked_math.h"
#include "core/run/convert.h"

namespace msrt {

Result<BoxMemory> BoxMemory::Make(CountedMemory* counter, DType dtype, ValueId value,
                                  const Box& box) {
  BoxMemory memory;
  memory.dtype_ = dtype, memory.value_ = value, memory.box_ = box;
  memory.strides_ = std::make_unique<const Dims>(RowMajorStrides(box.dims()));
  MSRT_ASSIGN_OR_RETURN(memory.block_,
                        Block::Make(counter->allocator(), BytesOf(dtype, box.volume()), "rows"));
  memory.counter_ = counter;
  counter->Add(memory.block_.bytes());
  return memory;
}

BoxMemory::BoxMemory(BoxMemory&& other) noexcept { *this = std::move(other); }

BoxMemory& BoxMemory::operator=(BoxMemory&& other) noexcept {
  if (this == &other) return *this;
  if (counter_ != nullptr) counter_->Remove(block_.bytes());
  counter_ = std::exchange(other.counter_, nullptr);
  dtype_ = other.dtype_, value_ = other.value_, box_ = other.box_;
  strides_ = std::move(other.strides_);
  block_ = std::move(other.block_);
  return *this;
}

BoxMemory::~BoxMemory() {
  if (counter_ != nullptr) counter_->Remove(block_.bytes());
}

PieceMemory BoxMemory::View(const Box& box) const {
  int64_t offset = 0;
  for (int d = 0; d < box.rank(); ++d) offset += (box[d].begin - box_[d].begin) * (*strides_)[d];
  TensorView view{dtype_, box.dims(), Layout::kPlain, block_.data() + BytesOf(dtype_, offset)};
  if (box != box_) view.strides = strides_->begin();
  return {value_, box, view};
}

Status BoxMemory::CopyFrom(const BoxMemory& from, ParallelFor& parallel) {
  const Box both = Intersect(box_, from.box_);
  if (both.empty()) return OkStatus();
  return ConvertLayout(from.View(both).memory, View(both).memory, parallel);
}

}  // namespace msrt
