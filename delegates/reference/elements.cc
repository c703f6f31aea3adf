#include "delegates/reference/elements.h"

#include <bit>
#include <type_traits>

#include "core/base/half.h"
#include "core/base/small_float.h"
#include "core/base/status.h"

namespace msrt::reference {
namespace {

template <typename W, typename T>
W Widen(T value) {
  if constexpr (std::is_floating_point_v<T> && std::is_integral_v<W>) return SaturateTo<W>(value);
  else return static_cast<W>(value);
}

// Converts an integer to a double that will be rounded again, to a shorter format. Bits that do not
// fit set the last bit (rounding to odd), so that the result is as if rounded once.
double ToDoubleKeepingOdd(uint64_t magnitude) {
  const int excess = std::max(0, 64 - std::countl_zero(magnitude) - 53);
  const uint64_t lost = magnitude & ((uint64_t{1} << excess) - 1);
  const uint64_t kept = (magnitude >> excess) | (lost != 0);
  return std::ldexp(static_cast<double>(kept), excess);
}

template <typename W>
double ToDouble(W value) {
  if constexpr (std::is_same_v<W, double>) return value;
  else if constexpr (std::is_same_v<W, int64_t>) {
    const auto bits = static_cast<uint64_t>(value);
    return value < 0 ? -ToDoubleKeepingOdd(0 - bits) : ToDoubleKeepingOdd(bits);
  } else {
    return ToDoubleKeepingOdd(value);
  }
}

template <typename T, typename W>
T Narrow(W value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return T(RoundToOdd(ToDouble(value)));
  else if constexpr (std::is_integral_v<T> && std::is_same_v<W, double>)
    return SaturateTo<T>(value);
  else return static_cast<T>(value);
}

template <typename T, typename W>
void LoadAs(const void* data, int64_t first, int64_t stride, int64_t count, W* out) {
  const T* from = static_cast<const T*>(data) + first;
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      out[i] = Widen<W>(static_cast<float>(from[i * stride]));
    else out[i] = Widen<W>(from[i * stride]);
  }
}

template <typename T, typename W>
void StoreAs(void* data, int64_t first, int64_t count, const W* values) {
  T* to = static_cast<T*>(data) + first;
  for (int64_t i = 0; i < count; ++i) to[i] = Narrow<T>(values[i]);
}

const SmallFloat* SmallFloatOf(DType type) {
  switch (type) {
    case DType::kF8E4M3FN:
      return &kE4M3FN;
    case DType::kF8E4M3FNUZ:
      return &kE4M3FNUZ;
    case DType::kF8E5M2:
      return &kE5M2;
    case DType::kF8E5M2FNUZ:
      return &kE5M2FNUZ;
    case DType::kF4E2M1:
      return &kE2M1;
    default:
      return nullptr;
  }
}

// Decodes an element of 8 or 4 bits that has no C++ type: bool, whose bytes may hold anything,
// small floats and 4-bit integers.
template <typename W>
W FromCode(DType type, uint8_t code) {
  if (type == DType::kBool) return code != 0;
  if (type == DType::kU4) return code;
  if (type == DType::kI4) return static_cast<W>(static_cast<int8_t>(code < 8 ? code : code - 16));
  return Widen<W>(DecodeSmallFloat(code, *SmallFloatOf(type)));
}

template <typename W>
uint8_t ToCode(DType type, W value, bool saturate) {
  if (type == DType::kBool) return value != 0;  // NaN is true
  if (const SmallFloat* format = SmallFloatOf(type))
    return EncodeSmallFloat(ToDouble(value), *format, saturate);
  if constexpr (std::is_same_v<W, double>) {
    if (type == DType::kU4) return std::min<uint8_t>(SaturateTo<uint8_t>(value), 15);
    return static_cast<uint8_t>(std::clamp<int8_t>(SaturateTo<int8_t>(value), -8, 7) & 15);
  } else {
    return static_cast<uint8_t>(value & 15);
  }
}

template <typename W>
void LoadCodes(DType type, const void* data, int64_t first, int64_t stride, int64_t count, W* out) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  if (BitsOf(type) == 8) {
    for (int64_t i = 0; i < count; ++i) out[i] = FromCode<W>(type, bytes[first + i * stride]);
    return;
  }
  W value_of[16];
  for (int code = 0; code < 16; ++code)
    value_of[code] = FromCode<W>(type, static_cast<uint8_t>(code));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = first + i * stride;
    out[i] = value_of[(bytes[at / 2] >> (at % 2 * 4)) & 15];
  }
}

template <typename W>
void StoreCodes(DType type, void* data, int64_t first, int64_t count, const W* values,
                bool saturate) {
  auto* bytes = static_cast<uint8_t*>(data);
  if (BitsOf(type) == 8) {
    for (int64_t i = 0; i < count; ++i) bytes[first + i] = ToCode(type, values[i], saturate);
    return;
  }
  for (int64_t i = 0; i < count; i += 2) {
    const int low = ToCode(type, values[i], saturate);
    const int high = i + 1 < count ? ToCode(type, values[i + 1], saturate) : 0;
    bytes[(first + i) / 2] = static_cast<uint8_t>(low | high << 4);
  }
}

}  // namespace

WideType WideTypeOf(DType type) {
  if ((kFloatTypes | kF8Types).Has(type) || type == DType::kF4E2M1) return WideType::kDouble;
  return kSignedTypes.Has(type) || type == DType::kI4 ? WideType::kSigned : WideType::kUnsigned;
}

template <typename W>
void LoadElements(DType type, const void* data, int64_t first, int64_t stride, int64_t count,
                  W* out) {
  switch (type) {
    case DType::kF64:
      return LoadAs<double>(data, first, stride, count, out);
    case DType::kF32:
      return LoadAs<float>(data, first, stride, count, out);
    case DType::kF16:
      return LoadAs<Half>(data, first, stride, count, out);
    case DType::kBF16:
      return LoadAs<BFloat16>(data, first, stride, count, out);
    case DType::kI8:
      return LoadAs<int8_t>(data, first, stride, count, out);
    case DType::kI16:
      return LoadAs<int16_t>(data, first, stride, count, out);
    case DType::kI32:
      return LoadAs<int32_t>(data, first, stride, count, out);
    case DType::kI64:
      return LoadAs<int64_t>(data, first, stride, count, out);
    case DType::kU8:
      return LoadAs<uint8_t>(data, first, stride, count, out);
    case DType::kU16:
      return LoadAs<uint16_t>(data, first, stride, count, out);
    case DType::kU32:
      return LoadAs<uint32_t>(data, first, stride, count, out);
    case DType::kU64:
      return LoadAs<uint64_t>(data, first, stride, count, out);
    default:
      return LoadCodes(type, data, first, stride, count, out);
  }
}

template <typename W>
void StoreElements(DType type, void* data, int64_t first, int64_t count, const W* values,
                   bool saturate) {
  switch (type) {
    case DType::kF64:
      return StoreAs<double>(data, first, count, values);
    case DType::kF32:
      return StoreAs<float>(data, first, count, values);
    case DType::kF16:
      return StoreAs<Half>(data, first, count, values);
    case DType::kBF16:
      return StoreAs<BFloat16>(data, first, count, values);
    case DType::kI8:
      return StoreAs<int8_t>(data, first, count, values);
    case DType::kI16:
      return StoreAs<int16_t>(data, first, count, values);
    case DType::kI32:
      return StoreAs<int32_t>(data, first, count, values);
    case DType::kI64:
      return StoreAs<int64_t>(data, first, count, values);
    case DType::kU8:
      return StoreAs<uint8_t>(data, first, count, values);
    case DType::kU16:
      return StoreAs<uint16_t>(data, first, count, values);
    case DType::kU32:
      return StoreAs<uint32_t>(data, first, count, values);
    case DType::kU64:
      return StoreAs<uint64_t>(data, first, count, values);
    default:
      return StoreCodes(type, data, first, count, values, saturate);
  }
}

std::vector<double> Doubles(const TensorView& t) {
  std::vector<double> values(static_cast<size_t>(t.elements()));
  LoadElements(t.dtype, t.data, 0, 1, t.elements(), values.data());
  return values;
}

template void LoadElements<double>(DType, const void*, int64_t, int64_t, int64_t, double*);
template void LoadElements<int64_t>(DType, const void*, int64_t, int64_t, int64_t, int64_t*);
template void LoadElements<uint64_t>(DType, const void*, int64_t, int64_t, int64_t, uint64_t*);
template void StoreElements<double>(DType, void*, int64_t, int64_t, const double*, bool);
template void StoreElements<int64_t>(DType, void*, int64_t, int64_t, const int64_t*, bool);
template void StoreElements<uint64_t>(DType, void*, int64_t, int64_t, const uint64_t*, bool);

}  // namespace msrt::reference
