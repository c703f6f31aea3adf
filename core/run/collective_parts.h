// Tensors of which ranks have parts along an axis, as messages in which the part of each rank is
// contiguous.
#pragma once

#include <cstddef>

#include "core/base/dims.h"

namespace msrt {

class AxisParts {
 public:
  // `whole`: the dims of the tensor with the parts of all ranks; `axis` may count from the end.
  // `width`: bytes of an element.
  AxisParts(const Dims& whole, int axis, int ranks, size_t width);

  size_t part_bytes() const { return outer_ * chunk_; }
  // Whether the parts are contiguous in the tensor, so that it is the message.
  bool is_message() const { return outer_ == 1 || ranks_ == 1; }
  void Pack(const void* tensor, void* message) const;
  void Unpack(const void* message, void* tensor) const;

 private:
  size_t outer_, chunk_, ranks_;
};

}  // namespace msrt
