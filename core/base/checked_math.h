// Arithmetic on sizes and offsets that come from outside. Each function returns false instead of
// wrapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace msrt {

template <typename T>
[[nodiscard]] inline bool CheckedAdd(T a, T b, T* out) {
  return !__builtin_add_overflow(a, b, out);
}
template <typename T>
[[nodiscard]] inline bool CheckedSub(T a, T b, T* out) {
  return !__builtin_sub_overflow(a, b, out);
}
template <typename T>
[[nodiscard]] inline bool CheckedMul(T a, T b, T* out) {
  return !__builtin_mul_overflow(a, b, out);
}

// The product of non-negative dims. A zero dim makes the product zero only if the others do not
// overflow, so that 2^40 x 2^40 x 0 cannot pass for an empty tensor.
[[nodiscard]] inline bool CheckedProduct(std::span<const int64_t> dims, int64_t* out) {
  int64_t product = 1;
  bool zero = false;
  for (int64_t d : dims) {
    if (d < 0) return false;
    if (d == 0) zero = true;
    else if (!CheckedMul(product, d, &product)) return false;
  }
  *out = zero ? 0 : product;
  return true;
}

// True if [offset, offset + length) is within [0, size). In subtraction form, so it cannot wrap.
[[nodiscard]] inline bool RangeFits(uint64_t offset, uint64_t length, uint64_t size) {
  return offset <= size && length <= size - offset;
}

// Rounds up to a multiple of `alignment`, a power of two.
[[nodiscard]] inline bool CheckedAlignUp(uint64_t value, uint64_t alignment, uint64_t* out) {
  uint64_t sum;
  if (!CheckedAdd(value, alignment - 1, &sum)) return false;
  *out = sum & ~(alignment - 1);
  return true;
}
inline constexpr size_t AlignUp(size_t value, size_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

inline constexpr int64_t CeilDiv(int64_t a, int64_t b) {
  return a / b + ((a % b != 0) && ((a < 0) == (b < 0)));
}
inline constexpr int64_t FloorDiv(int64_t a, int64_t b) {
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}

}  // namespace msrt
