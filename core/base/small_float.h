// Floats of 8 and 4 bits, in which weights and quantised tensors are stored. Decoding is exact;
// encoding rounds once, to nearest with ties to even, directly from double. Values beyond the
// largest number follow the tables of ONNX Cast (opset 24).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace msrt {

struct SmallFloat {
  enum Specials : uint8_t {
    kInfinityAndNan,  // as IEEE 754: the largest exponent holds the infinities and NaNs
    kNanOnly,         // only all ones is NaN ("FN")
    kOneNan,          // the code of -0 is the only NaN, so there is no -0 ("FNUZ")
    kNumbersOnly,     // every code is a number
  };
  int exponent_bits, fraction_bits, bias;
  Specials specials;
  double largest;

  int sign_bit() const { return 1 << (exponent_bits + fraction_bits); }
};
inline constexpr SmallFloat kE4M3FN{4, 3, 7, SmallFloat::kNanOnly, 448};
inline constexpr SmallFloat kE4M3FNUZ{4, 3, 8, SmallFloat::kOneNan, 240};
inline constexpr SmallFloat kE5M2{5, 2, 15, SmallFloat::kInfinityAndNan, 57344};
inline constexpr SmallFloat kE5M2FNUZ{5, 2, 16, SmallFloat::kOneNan, 57344};
inline constexpr SmallFloat kE2M1{2, 1, 1, SmallFloat::kNumbersOnly, 6};

inline double DecodeSmallFloat(uint8_t code, const SmallFloat& format) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const int magnitude = code & (format.sign_bit() - 1), largest_magnitude = format.sign_bit() - 1;
  const double sign = (code & format.sign_bit()) != 0 ? -1 : 1;
  const int exponent = magnitude >> format.fraction_bits,
            fraction = magnitude & ((1 << format.fraction_bits) - 1);
  if (format.specials == SmallFloat::kOneNan && sign < 0 && magnitude == 0) return kNan;
  if (format.specials == SmallFloat::kNanOnly && magnitude == largest_magnitude) return kNan;
  if (format.specials == SmallFloat::kInfinityAndNan &&
      exponent == (1 << format.exponent_bits) - 1) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : kNan;
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - format.bias - format.fraction_bits);
  return sign * std::ldexp((1 << format.fraction_bits) + fraction,
                           exponent - format.bias - format.fraction_bits);
}

// The code for a value that is no number of the format: NaN, infinities, and with `saturate` false
// everything that rounds beyond the largest number.
inline uint8_t EncodeSpecial(double value, const SmallFloat& format, bool saturate) {
  const int sign = std::signbit(value) ? format.sign_bit() : 0;
  const int largest_magnitude = format.sign_bit() - 1,
            infinity = largest_magnitude & ~((1 << format.fraction_bits) - 1);
  const bool to_largest = saturate && !std::isnan(value);
  switch (format.specials) {
    case SmallFloat::kInfinityAndNan:
      if (to_largest) return static_cast<uint8_t>(sign | (infinity - 1));
      return static_cast<uint8_t>(sign | (std::isnan(value) ? largest_magnitude : infinity));
    case SmallFloat::kNanOnly:
      return static_cast<uint8_t>(sign | (to_largest ? largest_magnitude - 1 : largest_magnitude));
    case SmallFloat::kOneNan:
      return static_cast<uint8_t>(to_largest ? sign | largest_magnitude : format.sign_bit());
    case SmallFloat::kNumbersOnly:
      return static_cast<uint8_t>(std::isnan(value) ? largest_magnitude : sign | largest_magnitude);
  }
  return 0;
}

inline uint8_t EncodeSmallFloat(double value, const SmallFloat& format, bool saturate = true) {
  if (!std::isfinite(value)) return EncodeSpecial(value, format, saturate);
  const double magnitude = std::abs(value);
  const int least_exponent = 1 - format.bias;
  const int exponent =
      magnitude < std::ldexp(1.0, least_exponent) ? least_exponent : std::ilogb(magnitude);
  // log2 of the spacing of the format's numbers around the value.
  const int unit = exponent - format.fraction_bits;
  const double units = std::nearbyint(std::ldexp(magnitude, -unit));
  if (std::ldexp(units, unit) > format.largest) return EncodeSpecial(value, format, saturate);
  // Numbers below the first normal one count from zero; above, a carry out of the fraction moves
  // the exponent up by itself.
  const int code = static_cast<int>(units) + ((exponent - least_exponent) << format.fraction_bits);
  if (code == 0 && format.specials == SmallFloat::kOneNan) return 0;
  return static_cast<uint8_t>(code | (std::signbit(value) ? format.sign_bit() : 0));
}

// Rounds to a neighbouring float whose last bit is set if the result is inexact. Rounding that to a
// still shorter format then equals rounding `value` to it directly (rounding to nearest twice does
// not).
inline float RoundToOdd(double value) {
  const float nearest = static_cast<float>(value);
  if (nearest == value || std::isnan(value)) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(value)) --bits;
  return std::bit_cast<float>(bits | 1);
}

}  // namespace msrt
