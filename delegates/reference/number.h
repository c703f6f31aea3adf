// Arithmetic on elements of any type, as reductions and scatters need it: wide accumulators,
// ordering with NaN, extremes, and conversions from double that are defined for every value.
#pragma once

#include <cmath>
#include <limits>

#include "delegates/reference/dispatch.h"

namespace msrt::reference {

// Accumulator of sums and products: double for floats, 64 bits that wrap for integers. The low bits
// of a wrapped sum are right for signed types too, so one unsigned type serves all.
template <typename T>
using Wide = std::conditional_t<kIsFloat<T>, double, uint64_t>;
template <typename T>
Wide<T> ToWide(T x) {
  if constexpr (kIsFloat<T>) return static_cast<double>(x);
  else return static_cast<uint64_t>(static_cast<SumType<T>>(x));
}
template <typename T>
T FromWide(Wide<T> x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return T(static_cast<float>(x));
  else return static_cast<T>(x);
}

template <typename T>
bool IsNan(T x) {
  if constexpr (kIsFloat<T>) return std::isnan(static_cast<ComputeType<T>>(x));
  else return false;
}

// Return the greater or the lesser of two; NaN if either is NaN, the first if they are equal.
template <typename T>
T GreaterOf(T a, T b) {
  return !IsNan(a) && (b > a || IsNan(b)) ? b : a;
}
template <typename T>
T LesserOf(T a, T b) {
  return !IsNan(a) && (b < a || IsNan(b)) ? b : a;
}

// The neutral elements of GreaterOf and LesserOf.
template <typename T>
T Lowest() {
  if constexpr (kIsFloat<T>) return T(-std::numeric_limits<ComputeType<T>>::infinity());
  else return std::numeric_limits<T>::lowest();
}
template <typename T>
T Highest() {
  if constexpr (kIsFloat<T>) return T(std::numeric_limits<ComputeType<T>>::infinity());
  else return std::numeric_limits<T>::max();
}

// Converts a float to an integer: truncated, the nearest value if it is out of range, 0 for NaN.
template <typename T>
T SaturateTo(double value) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  if (value >= static_cast<double>(Limits::max()))
    return Limits::max();  // 2^63 and 2^64 themselves are out of range
  return static_cast<T>(value);
}

// Converts to any type: as SaturateTo for integers, rounded for floats.
template <typename T>
T FromDouble(double x) {
  if constexpr (kIsFloat<T>) return FromWide<T>(x);
  else return SaturateTo<T>(x);
}

}  // namespace msrt::reference
