// Boxes of values in memory, for the executors of images: counted, so that the peak is known.
#pragma once

#include <optional>

#include "core/base/allocator.h"
#include "core/run/piece_runner.h"

namespace msrt {

class CountedMemory {
 public:
  explicit CountedMemory(Allocator* allocator) : allocator_(allocator) {}
  Allocator* allocator() const { return allocator_; }
  void Add(size_t bytes) { now_ += bytes; }
  void Remove(size_t bytes) { now_ -= bytes; }
  // Notes the peak, with memory that is counted elsewhere.
  void Note(size_t elsewhere) { peak_ = std::max(peak_, now_ + elsewhere); }
  size_t now() const { return now_; }
  size_t peak() const { return peak_; }
  void Reset() { peak_ = now_; }

 private:
  Allocator* const allocator_;
  size_t now_ = 0, peak_ = 0;
};

// A box of a value in dense memory. The counter outlives it.
class BoxMemory {
 public:
  static Result<BoxMemory> Make(CountedMemory* counter, DType dtype, ValueId value, const Box& box);
  BoxMemory(BoxMemory&& other) noexcept;
  BoxMemory& operator=(BoxMemory&& other) noexcept;
  ~BoxMemory();

  ValueId value() const { return value_; }
  const Box& box() const { return box_; }
  // Memory of a box inside this one. The strides of the view belong to this object.
  PieceMemory View(const Box& box) const;
  PieceMemory View() const { return View(box_); }
  // Copies the part of `from` that is inside this box.
  Status CopyFrom(const BoxMemory& from, ParallelFor& parallel);

 private:
  BoxMemory() = default;
  CountedMemory* counter_ = nullptr;
  DType dtype_ = DType::kNone;
  ValueId value_ = kNoValue;
  Box box_;
  std::unique_ptr<const Dims> strides_;
  Block block_;
};

}  // namespace msrt
