#include "core/image/files/pixel_convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace msrt {
namespace {

// Calls `body` with a value of the C++ type of an image's elements.
template <typename Body>
void WithPixelType(DType type, const Body& body) {
  switch (type) {
    case DType::kU8:
      return body(uint8_t{});
    case DType::kI8:
      return body(int8_t{});
    case DType::kU16:
      return body(uint16_t{});
    case DType::kI16:
      return body(int16_t{});
    case DType::kU32:
      return body(uint32_t{});
    case DType::kI32:
      return body(int32_t{});
    case DType::kF32:
      return body(float{});
    case DType::kF64:
      return body(double{});
    default:
      return;
  }
}

template <typename From, typename To>
void Convert(const std::byte* from, int64_t from_stride, std::byte* to, int64_t count) {
  const int64_t step = from_stride * static_cast<int64_t>(sizeof(From));
  for (int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * step, sizeof(From));
    const To converted = static_cast<To>(value);
    std::memcpy(to + i * static_cast<int64_t>(sizeof(To)), &converted, sizeof(To));
  }
}

template <typename T>
T Saturated(double value) {
  if constexpr (std::is_floating_point_v<T>) {
    // A double beyond float's range has no defined conversion.
    if (std::abs(value) > static_cast<double>(std::numeric_limits<T>::max()))
      return value > 0 ? std::numeric_limits<T>::infinity() : -std::numeric_limits<T>::infinity();
    return static_cast<T>(value);
  } else {
    if (std::isnan(value)) return 0;
    const double low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    return static_cast<T>(std::clamp(std::nearbyint(value), low, high));
  }
}

}  // namespace

void ConvertPixels(const std::byte* from, DType from_type, int64_t from_stride, std::byte* to,
                   DType to_type, int64_t count) {
  if (from_type == to_type && from_stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * static_cast<size_t>(BitsOf(to_type) / 8));
    return;
  }
  WithPixelType(from_type, [&](auto zero) {
    using From = decltype(zero);
    if (from_type == to_type) Convert<From, From>(from, from_stride, to, count);
    else if constexpr (std::is_same_v<From, double>)
      for (int64_t i = 0; i < count; ++i) {
        double value;
        std::memcpy(&value, from + i * from_stride * 8, 8);
        const float converted = Saturated<float>(value);
        std::memcpy(to + i * 4, &converted, 4);
      }
    else Convert<From, float>(from, from_stride, to, count);
  });
}

void ScatterPixels(const std::byte* from, std::byte* to, int64_t to_stride, int64_t element_bytes,
                   int64_t count) {
  const auto bytes = static_cast<size_t>(element_bytes);
  if (to_stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * bytes);
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * to_stride * element_bytes, from + i * element_bytes, bytes);
}

void FillPixels(double value, DType type, std::byte* to, int64_t count) {
  WithPixelType(type, [&](auto zero) {
    using T = decltype(zero);
    const T element = Saturated<T>(value);
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(to + i * static_cast<int64_t>(sizeof(T)), &element, sizeof(T));
  });
}

}  // namespace msrt
