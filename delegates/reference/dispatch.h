// Maps an element type at run time to a C++ type: Dispatch(dtype, [&]<typename T>() { ... }).
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/base/half.h"
#include "core/base/status.h"
#include "core/graph/dtype.h"

namespace msrt::reference {

template <typename T>
inline constexpr bool kIsFloat =
    std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// The type that a kernel computes in: float for half types, otherwise the type itself. Booleans are
// stored as bytes 0 and 1 (type bool).
template <typename T>
using ComputeType =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;
// The type that a kernel sums in: double for floats, 64 bits of the same signedness for integers.
template <typename T>
using SumType = std::conditional_t<kIsFloat<T>, double,
                                   std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <typename F>
Status DispatchFloat(DType type, F&& f) {
  switch (type) {
    case DType::kF64:
      return f.template operator()<double>();
    case DType::kF32:
      return f.template operator()<float>();
    case DType::kF16:
      return f.template operator()<Half>();
    case DType::kBF16:
      return f.template operator()<BFloat16>();
    default:
      return InternalError("reference kernel: element type ", type, " is not a float");
  }
}

template <typename F>
Status DispatchInt(DType type, F&& f) {
  switch (type) {
    case DType::kI8:
      return f.template operator()<int8_t>();
    case DType::kI16:
      return f.template operator()<int16_t>();
    case DType::kI32:
      return f.template operator()<int32_t>();
    case DType::kI64:
      return f.template operator()<int64_t>();
    case DType::kU8:
      return f.template operator()<uint8_t>();
    case DType::kU16:
      return f.template operator()<uint16_t>();
    case DType::kU32:
      return f.template operator()<uint32_t>();
    case DType::kU64:
      return f.template operator()<uint64_t>();
    default:
      return InternalError("reference kernel: element type ", type, " is not an integer");
  }
}

template <typename F>
Status DispatchNumber(DType type, F&& f) {
  return IsFloat(type) ? DispatchFloat(type, f) : DispatchInt(type, f);
}

// Numbers and bool.
template <typename F>
Status Dispatch(DType type, F&& f) {
  if (type == DType::kBool) return f.template operator()<bool>();
  return DispatchNumber(type, f);
}

// For kernels that only move elements: one instance for each width (1, 2, 4 or 8 bytes).
template <typename F>
Status DispatchWidth(DType type, F&& f) {
  switch (BitsOf(type)) {
    case 8:
      return f.template operator()<uint8_t>();
    case 16:
      return f.template operator()<uint16_t>();
    case 32:
      return f.template operator()<uint32_t>();
    case 64:
      return f.template operator()<uint64_t>();
    default:
      return Unsupported("reference kernel: ", type,
                         " elements have no address of their own; cast first");
  }
}

}  // namespace msrt::reference
