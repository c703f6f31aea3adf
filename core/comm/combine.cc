#include "core/comm/combine.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/base/half_array.h"

namespace msrt {
namespace {

template <CommReduce kReduce, typename T>
inline T Apply(T a, T b) {
  if constexpr (kReduce == CommReduce::kSum || kReduce == CommReduce::kProduct) {
    constexpr bool is_sum = kReduce == CommReduce::kSum;
    if constexpr (std::is_floating_point_v<T>) return is_sum ? a + b : a * b;
    else {
      // Unsigned and at least as wide as int, so that neither overflow nor promotion is undefined.
      using U = std::conditional_t<sizeof(T) < 4, uint32_t, std::make_unsigned_t<T>>;
      const U x = static_cast<U>(a), y = static_cast<U>(b);
      return static_cast<T>(is_sum ? x + y : x * y);
    }
  } else if constexpr (kReduce == CommReduce::kMin) {
    return a < b || a != a ? a : b;
  } else {
    return a > b || a != a ? a : b;
  }
}

// Buffers of callers may have any alignment; a copy through a block keeps the loops defined and
// costs nothing where they are aligned.
template <typename T>
inline bool IsAligned(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % alignof(T) == 0;
}

template <CommReduce kReduce, typename T>
void CombineAligned(T* out, const T* a, const T* b, size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = Apply<kReduce>(a[i], b[i]);
}

inline constexpr size_t kBlock = 512;

template <CommReduce kReduce, typename T>
void CombineAs(std::byte* out, const std::byte* a, const std::byte* b, size_t count) {
  if (IsAligned<T>(out) && IsAligned<T>(a) && IsAligned<T>(b)) {
    CombineAligned<kReduce>(reinterpret_cast<T*>(out), reinterpret_cast<const T*>(a),
                            reinterpret_cast<const T*>(b), count);
    return;
  }
  T x[kBlock], y[kBlock];
  for (size_t i = 0; i < count; i += kBlock) {
    const size_t n = std::min(kBlock, count - i);
    std::memcpy(x, a + i * sizeof(T), n * sizeof(T));
    std::memcpy(y, b + i * sizeof(T), n * sizeof(T));
    CombineAligned<kReduce>(x, x, y, n);
    std::memcpy(out + i * sizeof(T), x, n * sizeof(T));
  }
}

template <CommReduce kReduce, typename T>
void CombineSmallFloats(std::byte* out, const std::byte* a, const std::byte* b, size_t count) {
  T bits[kBlock];
  float x[kBlock], y[kBlock];
  for (size_t i = 0; i < count; i += kBlock) {
    const size_t n = std::min(kBlock, count - i);
    std::memcpy(static_cast<void*>(bits), a + i * sizeof(T), n * sizeof(T));
    ConvertArray(bits, x, n);
    std::memcpy(static_cast<void*>(bits), b + i * sizeof(T), n * sizeof(T));
    ConvertArray(bits, y, n);
    CombineAligned<kReduce>(x, x, y, n);
    ConvertArray(x, bits, n);
    std::memcpy(out + i * sizeof(T), bits, n * sizeof(T));
  }
}

template <CommReduce kReduce>
void CombineBy(std::byte* out, const std::byte* a, const std::byte* b, size_t count,
               CommType type) {
  switch (type) {
    case CommType::kF32:
      return CombineAs<kReduce, float>(out, a, b, count);
    case CommType::kF64:
      return CombineAs<kReduce, double>(out, a, b, count);
    case CommType::kF16:
      return CombineSmallFloats<kReduce, Half>(out, a, b, count);
    case CommType::kBF16:
      return CombineSmallFloats<kReduce, BFloat16>(out, a, b, count);
    case CommType::kI32:
      return CombineAs<kReduce, int32_t>(out, a, b, count);
    case CommType::kI64:
      return CombineAs<kReduce, int64_t>(out, a, b, count);
    case CommType::kU8:
      return CombineAs<kReduce, uint8_t>(out, a, b, count);
  }
}

}  // namespace

size_t CommTypeBytes(CommType type) {
  switch (type) {
    case CommType::kF64:
    case CommType::kI64:
      return 8;
    case CommType::kF32:
    case CommType::kI32:
      return 4;
    case CommType::kF16:
    case CommType::kBF16:
      return 2;
    case CommType::kU8:
      return 1;
  }
  return 1;
}

std::string_view CommTypeName(CommType type) {
  constexpr std::string_view kNames[] = {"f32", "f64", "f16", "bf16", "i32", "i64", "u8"};
  const auto index = static_cast<size_t>(type);
  return index < std::size(kNames) ? kNames[index] : "unknown type";
}

std::string_view CommReduceName(CommReduce reduce) {
  constexpr std::string_view kNames[] = {"sum", "product", "min", "max"};
  const auto index = static_cast<size_t>(reduce);
  return index < std::size(kNames) ? kNames[index] : "unknown reduction";
}

void Combine(void* out, const void* a, const void* b, size_t count, CommType type,
             CommReduce reduce) {
  auto* o = static_cast<std::byte*>(out);
  const auto* x = static_cast<const std::byte*>(a);
  const auto* y = static_cast<const std::byte*>(b);
  switch (reduce) {
    case CommReduce::kSum:
      return CombineBy<CommReduce::kSum>(o, x, y, count, type);
    case CommReduce::kProduct:
      return CombineBy<CommReduce::kProduct>(o, x, y, count, type);
    case CommReduce::kMin:
      return CombineBy<CommReduce::kMin>(o, x, y, count, type);
    case CommReduce::kMax:
      return CombineBy<CommReduce::kMax>(o, x, y, count, type);
  }
}

}  // namespace msrt
