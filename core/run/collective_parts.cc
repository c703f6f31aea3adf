#include "core/run/collective_parts.h"

#include <cstring>

namespace msrt {

AxisParts::AxisParts(const Dims& whole, int axis, int ranks, size_t width)
    : ranks_(static_cast<size_t>(ranks)) {
  const int at = axis < 0 ? axis + whole.rank() : axis;
  outer_ = static_cast<size_t>(whole.product(0, at));
  chunk_ = static_cast<size_t>(whole.product(at, whole.rank())) / ranks_ * width;
}

void AxisParts::Pack(const void* tensor, void* message) const {
  if (chunk_ == 0) return;
  const auto* from = static_cast<const std::byte*>(tensor);
  auto* const to = static_cast<std::byte*>(message);
  for (size_t o = 0; o < outer_; ++o) {
    for (size_t r = 0; r < ranks_; ++r, from += chunk_)
      std::memcpy(to + (r * outer_ + o) * chunk_, from, chunk_);
  }
}

void AxisParts::Unpack(const void* message, void* tensor) const {
  if (chunk_ == 0) return;
  const auto* const from = static_cast<const std::byte*>(message);
  auto* to = static_cast<std::byte*>(tensor);
  for (size_t o = 0; o < outer_; ++o) {
    for (size_t r = 0; r < ranks_; ++r, to += chunk_)
      std::memcpy(to, from + (r * outer_ + o) * chunk_, chunk_);
  }
}

}  // namespace msrt
