#include "core/image/files/overview.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace msrt {
namespace {

template <typename T>
T MostFrequent(std::span<const T> values) {
  T best = values[0];
  std::ptrdiff_t most = 0;
  for (const T value : values) {
    const auto count = std::count(values.begin(), values.end(), value);
    if (count > most) {
      most = count;
      best = value;
    }
  }
  return best;
}

template <typename T>
T Mean(std::span<const T> values, const std::optional<double>& no_data) {
  double sum = 0;
  int count = 0;
  for (const T value : values) {
    const auto number = static_cast<double>(value);
    if (std::isnan(number) || (no_data.has_value() && number == *no_data)) continue;
    sum += number;
    ++count;
  }
  if (count == 0) return values[0];  // NaN or no-data
  const double mean = sum / count;
  return static_cast<T>(std::is_floating_point_v<T> ? mean : std::nearbyint(mean));
}

template <typename T>
void HalveRows(const OverviewRule& rule, const std::byte* from, int64_t from_stride, int64_t rows,
               int64_t cols, std::byte* to, int64_t to_stride) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  for (int64_t row = 0; row < rows; row += 2) {
    for (int64_t col = 0; col < cols; col += 2) {
      std::array<T, 4> values{};
      size_t count = 0;
      for (int64_t r = row; r < std::min(row + 2, rows); ++r) {
        for (int64_t c = col; c < std::min(col + 2, cols); ++c)
          std::memcpy(&values[count++], from + (r * from_stride + c) * kBytes, sizeof(T));
      }
      const std::span<const T> present(values.data(), count);
      const T value =
          rule.mode == OverviewMode::kMean ? Mean(present, rule.no_data) : MostFrequent(present);
      std::memcpy(to + (row / 2 * to_stride + col / 2) * kBytes, &value, sizeof(T));
    }
  }
}

}  // namespace

void Halve(const OverviewRule& rule, const std::byte* from, int64_t from_stride, int64_t rows,
           int64_t cols, std::byte* to, int64_t to_stride) {
  const auto run = [&](auto zero) {
    HalveRows<decltype(zero)>(rule, from, from_stride, rows, cols, to, to_stride);
  };
  switch (rule.dtype) {
    case DType::kU8:
      return run(uint8_t{});
    case DType::kI8:
      return run(int8_t{});
    case DType::kU16:
      return run(uint16_t{});
    case DType::kI16:
      return run(int16_t{});
    case DType::kU32:
      return run(uint32_t{});
    case DType::kI32:
      return run(int32_t{});
    case DType::kF32:
      return run(float{});
    case DType::kF64:
      return run(double{});
    default:
      return;
  }
}

}  // namespace msrt
