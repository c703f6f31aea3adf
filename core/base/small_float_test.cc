#include "core/base/small_float.h"

#include <gtest/gtest.h>

#include "core/base/half.h"

namespace msrt {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNan = std::numeric_limits<double>::quiet_NaN();
constexpr const SmallFloat* kFormats[] = {&kE4M3FN, &kE4M3FNUZ, &kE5M2, &kE5M2FNUZ, &kE2M1};

TEST(SmallFloat, KnownCodesDecode) {
  EXPECT_EQ(DecodeSmallFloat(0x38, kE4M3FN), 1);
  EXPECT_EQ(DecodeSmallFloat(0x7e, kE4M3FN), 448);
  EXPECT_EQ(DecodeSmallFloat(0x01, kE4M3FN), 0x1p-9);
  EXPECT_TRUE(std::isnan(DecodeSmallFloat(0xff, kE4M3FN)));
  EXPECT_EQ(DecodeSmallFloat(0x40, kE4M3FNUZ), 1);
  EXPECT_EQ(DecodeSmallFloat(0x7f, kE4M3FNUZ), 240);
  EXPECT_TRUE(std::isnan(DecodeSmallFloat(0x80, kE4M3FNUZ)));
  EXPECT_EQ(DecodeSmallFloat(0xbc, kE5M2), -1);
  EXPECT_EQ(DecodeSmallFloat(0xfc, kE5M2), -kInf);
  EXPECT_EQ(DecodeSmallFloat(0x7b, kE5M2), 57344);
  EXPECT_EQ(DecodeSmallFloat(0x7f, kE5M2FNUZ), 57344);
  const double e2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (int i = 0; i < 8; ++i) EXPECT_EQ(DecodeSmallFloat(static_cast<uint8_t>(i), kE2M1), e2m1[i]);
}

TEST(SmallFloat, EveryNumberRoundTrips) {
  for (const SmallFloat* format : kFormats) {
    for (int code = 0; code < 2 * format->sign_bit(); ++code) {
      const double value = DecodeSmallFloat(static_cast<uint8_t>(code), *format);
      if (!std::isnan(value)) {
        EXPECT_EQ(EncodeSmallFloat(value, *format, false), code) << value;
      }
    }
  }
}

TEST(SmallFloat, MiddlesRoundToEvenCodes) {
  for (const SmallFloat* format : kFormats) {
    for (int code = 0; code + 1 < format->sign_bit(); ++code) {
      const double low = DecodeSmallFloat(static_cast<uint8_t>(code), *format);
      const double high = DecodeSmallFloat(static_cast<uint8_t>(code + 1), *format);
      if (std::isnan(high) || std::isinf(high) || std::isnan(low)) continue;
      const double middle = (low + high) / 2;
      EXPECT_EQ(EncodeSmallFloat(middle, *format), code % 2 == 0 ? code : code + 1);
      EXPECT_EQ(EncodeSmallFloat(std::nextafter(middle, 0), *format), code);
      EXPECT_EQ(EncodeSmallFloat(std::nextafter(middle, kInf), *format), code + 1);
    }
  }
}

TEST(SmallFloat, OverflowFollowsOnnxCast) {
  const auto value = [](double x, const SmallFloat& format, bool saturate) {
    return DecodeSmallFloat(EncodeSmallFloat(x, format, saturate), format);
  };
  for (const SmallFloat* format : kFormats) {
    EXPECT_EQ(value(1e300, *format, true), format->largest);
    EXPECT_EQ(value(-1e300, *format, true), -format->largest);
    EXPECT_EQ(std::isnan(value(kNan, *format, true)), format != &kE2M1);
  }
  EXPECT_EQ(value(464, kE4M3FN, false), 448);
  EXPECT_TRUE(std::isnan(value(464.1, kE4M3FN, false)));
  EXPECT_EQ(value(-kInf, kE4M3FN, true), -448);
  EXPECT_EQ(value(kInf, kE5M2, true), 57344);
  EXPECT_EQ(value(1e9, kE5M2, false), kInf);
  EXPECT_EQ(value(kInf, kE5M2FNUZ, true), 57344);
  EXPECT_TRUE(std::isnan(value(kInf, kE5M2FNUZ, false)));
  EXPECT_TRUE(std::isnan(value(1e9, kE4M3FNUZ, false)));
  EXPECT_EQ(EncodeSmallFloat(kNan, kE2M1), 7);
  EXPECT_EQ(EncodeSmallFloat(-0.0, kE4M3FN), 0x80);
  EXPECT_EQ(EncodeSmallFloat(-0.0, kE4M3FNUZ), 0);
  EXPECT_EQ(EncodeSmallFloat(-1e-30, kE5M2FNUZ), 0);
}

TEST(SmallFloat, RoundToOddMakesTheSecondRoundingRight) {
  // 1 + 2^-11 is in the middle between two halves; a little more must go up, though the nearest
  // float is the middle itself.
  const double above = 1 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(static_cast<float>(Half(static_cast<float>(above))), 1);
  EXPECT_EQ(static_cast<float>(Half(RoundToOdd(above))), 1 + 0x1p-10);
  EXPECT_EQ(static_cast<float>(BFloat16(RoundToOdd(-(1 + 0x1p-8 + 0x1p-50)))), -(1 + 0x1p-7));
  EXPECT_EQ(RoundToOdd(1.5), 1.5f);
  EXPECT_EQ(static_cast<float>(BFloat16(RoundToOdd(1e300))), kInf);
  EXPECT_EQ(RoundToOdd(-kInf), -kInf);
  EXPECT_EQ(static_cast<float>(Half(RoundToOdd(-1e-300))), 0);
}

}  // namespace
}  // namespace msrt
