// Combine against one element at a time in double or wrapping integers.
#include "core/comm/combine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/base/half.h"

namespace msrt {
namespace {

constexpr CommReduce kAllReductions[] = {CommReduce::kSum, CommReduce::kProduct, CommReduce::kMin,
                                         CommReduce::kMax};

double Expected(double a, double b, CommReduce reduce) {
  switch (reduce) {
    case CommReduce::kSum:
      return a + b;
    case CommReduce::kProduct:
      return a * b;
    case CommReduce::kMin:
      return std::fmin(a, b);
    case CommReduce::kMax:
      return std::fmax(a, b);
  }
  return 0;
}

// Small integers are exact in every type, so any correct rounding has the same result; sums of
// fractions are rounded once from double, which for two terms is the rounding of the type itself.
template <typename T>
void CheckFloats(CommType type) {
  std::mt19937 random(static_cast<unsigned>(type));
  for (const size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{513}, size_t{2000}}) {
    for (const size_t shift : {0, 1}) {  // also unaligned
      std::vector<std::byte> a(count * sizeof(T) + 1), b(a.size()), out(a.size());
      std::vector<T> x(count), y(count);
      for (size_t i = 0; i < count; ++i) {
        x[i] = T(static_cast<float>(static_cast<int>(random() % 65) - 32) / 8);
        y[i] = T(static_cast<float>(static_cast<int>(random() % 65) - 32) / 8);
      }
      if (count != 0)
        std::memcpy(a.data() + shift, static_cast<const void*>(x.data()), count * sizeof(T));
      if (count != 0)
        std::memcpy(b.data() + shift, static_cast<const void*>(y.data()), count * sizeof(T));
      for (const CommReduce reduce : kAllReductions) {
        Combine(out.data() + shift, a.data() + shift, b.data() + shift, count, type, reduce);
        for (size_t i = 0; i < count; ++i) {
          T got;
          std::memcpy(static_cast<void*>(&got), out.data() + shift + i * sizeof(T), sizeof(T));
          const double exact =
              Expected(static_cast<double>(x[i]), static_cast<double>(y[i]), reduce);
          ASSERT_EQ(static_cast<double>(got), static_cast<double>(T(static_cast<float>(exact))))
              << CommTypeName(type) << " " << CommReduceName(reduce) << " element " << i;
        }
      }
    }
  }
}

TEST(CombineTest, FloatsAreExact) {
  CheckFloats<float>(CommType::kF32);
  CheckFloats<double>(CommType::kF64);
  CheckFloats<Half>(CommType::kF16);
  CheckFloats<BFloat16>(CommType::kBF16);
}

TEST(CombineTest, IntegersWrap) {
  const int32_t a = std::numeric_limits<int32_t>::max(), b = 2;
  int32_t sum = 0, product = 0;
  Combine(&sum, &a, &b, 1, CommType::kI32, CommReduce::kSum);
  Combine(&product, &a, &b, 1, CommType::kI32, CommReduce::kProduct);
  EXPECT_EQ(sum, std::numeric_limits<int32_t>::min() + 1);
  EXPECT_EQ(product, -2);
  const int64_t c = std::numeric_limits<int64_t>::min(), d = -1;
  int64_t wide = 0;
  Combine(&wide, &c, &d, 1, CommType::kI64, CommReduce::kSum);
  EXPECT_EQ(wide, std::numeric_limits<int64_t>::max());
  const uint8_t e = 200, f = 100;
  uint8_t byte = 0;
  Combine(&byte, &e, &f, 1, CommType::kU8, CommReduce::kSum);
  EXPECT_EQ(byte, 44);
  Combine(&byte, &e, &f, 1, CommType::kU8, CommReduce::kProduct);
  EXPECT_EQ(byte, 32);
}

TEST(CombineTest, MinimumAndMaximumKeepNaN) {
  const float nan = std::nanf(""), one = 1;
  for (const CommReduce reduce : {CommReduce::kMin, CommReduce::kMax}) {
    float out = 0;
    Combine(&out, &nan, &one, 1, CommType::kF32, reduce);
    EXPECT_TRUE(std::isnan(out));
    Combine(&out, &one, &nan, 1, CommType::kF32, reduce);
    EXPECT_TRUE(std::isnan(out));
  }
}

}  // namespace
}  // namespace msrt
