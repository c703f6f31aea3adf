// Elements of any type in kernels: loaded into one of the four types that kernels compute in, and
// stored from it. Floats of 16 and 32 bits are computed in float, integers in 64 bits. A float
// beyond an integer's range becomes the nearest integer of the type, NaN becomes 0.
#pragma once

#include "delegates/cuda/kernels/kernel.h"

namespace msrt::cuda {

// Numbers of core/graph/dtype.h.
enum ElementType : int32_t {
  kTypeF64 = 1,
  kTypeF32 = 2,
  kTypeF16 = 3,
  kTypeBF16 = 4,
  kTypeI8 = 5,
  kTypeI16 = 6,
  kTypeI32 = 7,
  kTypeI64 = 8,
  kTypeU8 = 9,
  kTypeU16 = 10,
  kTypeU32 = 11,
  kTypeU64 = 12,
  kTypeBool = 13,
};

template <typename W>
constexpr bool kIsFloatType = false;
template <>
constexpr bool kIsFloatType<float> = true;
template <>
constexpr bool kIsFloatType<double> = true;

template <typename T, typename W>
DEVICE W LoadElement(const void* data, int64_t i) {
  return static_cast<W>(static_cast<const T*>(data)[i]);
}

template <typename W>
DEVICE W Load(int32_t type, const void* data, int64_t i) {
  switch (type) {
    case kTypeF64:
      return LoadElement<double, W>(data, i);
    case kTypeF32:
      return LoadElement<float, W>(data, i);
    case kTypeF16:
      return static_cast<W>(ToFloat(static_cast<const Half*>(data)[i]));
    case kTypeBF16:
      return static_cast<W>(ToFloat(static_cast<const BFloat16*>(data)[i]));
    case kTypeI8:
      return LoadElement<int8_t, W>(data, i);
    case kTypeI16:
      return LoadElement<int16_t, W>(data, i);
    case kTypeI32:
      return LoadElement<int32_t, W>(data, i);
    case kTypeI64:
      return LoadElement<int64_t, W>(data, i);
    case kTypeU8:
    case kTypeBool:
      return LoadElement<uint8_t, W>(data, i);
    case kTypeU16:
      return LoadElement<uint16_t, W>(data, i);
    case kTypeU32:
      return LoadElement<uint32_t, W>(data, i);
    default:
      return LoadElement<uint64_t, W>(data, i);
  }
}

// A float from which a conversion to fewer digits rounds as from x itself: where x is between two
// floats, the one whose last bit is set (rounding to odd).
DEVICE float ToOdd(float x) { return x; }
DEVICE float ToOdd(double x) {
  const float nearest = static_cast<float>(x);
  const double back = static_cast<double>(nearest);
  const uint32_t bits = __float_as_uint(nearest);
  if (back == x || x != x || (bits & 1) != 0 || (bits & 0x7fffffffu) == 0x7f800000u) return nearest;
  // The neighbour on the other side of x. Below the least float that is the least one.
  const bool away = fabs(back) < fabs(x);
  if (!away && (bits & 0x7fffffffu) == 0) return nearest;
  return __uint_as_float(away ? bits + 1 : bits - 1);
}
DEVICE float ToOdd(int32_t x) { return static_cast<float>(x); }
DEVICE float ToOdd(int64_t x) { return static_cast<float>(x); }
DEVICE float ToOdd(uint64_t x) { return static_cast<float>(x); }

// The least number and the first one beyond the greatest, which are exact in float and double.
template <typename T, typename W>
DEVICE T ToInteger(W x, W least, W beyond, T lowest, T highest) {
  if (x != x) return 0;
  if (x <= least) return lowest;
  if (x >= beyond) return highest;
  return static_cast<T>(x);
}

template <typename T, typename W>
DEVICE void StoreInteger(void* data, int64_t i, W x) {
  T value;
  if constexpr (kIsFloatType<W>) {
    constexpr int kBits = 8 * sizeof(T);
    constexpr bool kSigned = static_cast<T>(-1) < static_cast<T>(0);
    constexpr T kHighest = static_cast<T>(~uint64_t{0} >> (64 - kBits + (kSigned ? 1 : 0)));
    constexpr T kLowest = kSigned ? static_cast<T>(-kHighest - 1) : T{0};
    const W half = static_cast<W>(uint64_t{1} << (kBits - 1));
    value =
        ToInteger<T, W>(x, kSigned ? -half : W{0}, kSigned ? half : 2 * half, kLowest, kHighest);
  } else {
    value = static_cast<T>(x);
  }
  static_cast<T*>(data)[i] = value;
}

template <typename W>
DEVICE void Store(int32_t type, void* data, int64_t i, W x) {
  switch (type) {
    case kTypeF64:
      static_cast<double*>(data)[i] = static_cast<double>(x);
      break;
    case kTypeF32:
      static_cast<float*>(data)[i] = static_cast<float>(x);
      break;
    case kTypeF16:
      static_cast<Half*>(data)[i] = FromFloat<Half>(ToOdd(x));
      break;
    case kTypeBF16:
      static_cast<BFloat16*>(data)[i] = FromFloat<BFloat16>(ToOdd(x));
      break;
    case kTypeI8:
      StoreInteger<int8_t>(data, i, x);
      break;
    case kTypeI16:
      StoreInteger<int16_t>(data, i, x);
      break;
    case kTypeI32:
      StoreInteger<int32_t>(data, i, x);
      break;
    case kTypeI64:
      StoreInteger<int64_t>(data, i, x);
      break;
    case kTypeU8:
      StoreInteger<uint8_t>(data, i, x);
      break;
    case kTypeU16:
      StoreInteger<uint16_t>(data, i, x);
      break;
    case kTypeU32:
      StoreInteger<uint32_t>(data, i, x);
      break;
    case kTypeU64:
      StoreInteger<uint64_t>(data, i, x);
      break;
    default:
      static_cast<uint8_t*>(data)[i] = x != W{0} ? 1 : 0;
  }
}

// The same for floats only: a quarter of the code, for kernels that load in many places.
template <typename W>
DEVICE W LoadReal(int32_t type, const void* data, int64_t i) {
  switch (type) {
    case kTypeF32:
      return LoadElement<float, W>(data, i);
    case kTypeF16:
      return static_cast<W>(ToFloat(static_cast<const Half*>(data)[i]));
    case kTypeBF16:
      return static_cast<W>(ToFloat(static_cast<const BFloat16*>(data)[i]));
    default:
      return LoadElement<double, W>(data, i);
  }
}

template <typename W>
DEVICE void StoreReal(int32_t type, void* data, int64_t i, W x) {
  switch (type) {
    case kTypeF32:
      static_cast<float*>(data)[i] = static_cast<float>(x);
      break;
    case kTypeF16:
      static_cast<Half*>(data)[i] = FromFloat<Half>(ToOdd(x));
      break;
    case kTypeBF16:
      static_cast<BFloat16*>(data)[i] = FromFloat<BFloat16>(ToOdd(x));
      break;
    default:
      static_cast<double*>(data)[i] = static_cast<double>(x);
  }
}

}  // namespace msrt::cuda
