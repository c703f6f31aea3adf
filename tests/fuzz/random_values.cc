#include "tests/fuzz/random_values.h"

#include <cmath>
#include <vector>

#include "core/base/half.h"

namespace msrt::testing {
namespace {

template <typename T>
ConstTensor Converted(DType dtype, const Dims& dims, std::span<const double> values) {
  std::vector<T> converted;
  for (double v : values) converted.push_back(static_cast<T>(static_cast<float>(v)));
  return ConstTensor::Of<T>(dtype, dims, converted);
}

template <typename T>
ConstTensor Integers(DType dtype, const Dims& dims, std::span<const int64_t> values) {
  std::vector<T> converted;
  for (int64_t v : values) converted.push_back(static_cast<T>(v));
  return ConstTensor::Of<T>(dtype, dims, converted);
}

ConstTensor IntTensor(DType dtype, const Dims& dims, std::span<const int64_t> values) {
  switch (BitsOf(dtype)) {
    case 8:
      return Integers<int8_t>(dtype, dims, values);
    case 16:
      return Integers<int16_t>(dtype, dims, values);
    case 32:
      return Integers<int32_t>(dtype, dims, values);
    default:
      return Integers<int64_t>(dtype, dims, values);
  }
}

}  // namespace

DType Choices::TypeOf(DTypeSet set) {
  for (;;) {
    const auto type = static_cast<DType>(Between(1, kDTypeCount - 1));
    if (set.Has(type)) return type;
  }
}

ConstTensor FloatTensor(DType dtype, const Dims& dims, std::span<const double> values) {
  switch (dtype) {
    case DType::kF64:
      return ConstTensor::Of<double>(dtype, dims, values);
    case DType::kF32:
      return Converted<float>(dtype, dims, values);
    case DType::kF16:
      return Converted<Half>(dtype, dims, values);
    default:
      return Converted<BFloat16>(dtype, dims, values);
  }
}

ConstTensor RandomIndices(Choices& choices, DType dtype, const Dims& dims, int64_t low,
                          int64_t high) {
  std::vector<int64_t> values(static_cast<size_t>(dims.elements()));
  for (int64_t& v : values) v = choices.Between(low, high);
  return IntTensor(dtype, dims, values);
}

ConstTensor RandomTensor(Choices& choices, DType dtype, const Dims& dims) {
  if (IsFloat(dtype)) {
    std::vector<double> values(static_cast<size_t>(dims.elements()));
    for (double& v : values)
      v = choices.OneIn(8) ? static_cast<double>(choices.Between(-2, 2)) : choices.Unit() * 4 - 2;
    return FloatTensor(dtype, dims, values);
  }
  if (dtype == DType::kBool) return RandomIndices(choices, dtype, dims, 0, 1);
  if (kIntTypes.Has(dtype))
    return RandomIndices(choices, dtype, dims, kSignedTypes.Has(dtype) ? -4 : 0, 7);
  // Storage types: every code that is a finite number of moderate size, two to a byte for 4 bits.
  std::vector<std::byte> bytes(BytesOf(dtype, dims.elements()));
  for (std::byte& b : bytes)
    b = static_cast<std::byte>(BitsOf(dtype) == 4 ? choices.Between(0, 255)
                                                  : choices.Between(0x20, 0x3f));
  if (BitsOf(dtype) == 4 && dims.elements() % 2 != 0) bytes.back() &= std::byte{0x0f};
  return ConstTensor::Copy(dtype, dims, bytes);
}

}  // namespace msrt::testing
