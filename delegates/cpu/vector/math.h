// Elementary functions in f32, written without branches so that the compiler vectorises loops over
// them. Errors are a few units in the last place; NaN stays NaN; infinities and overflow behave as
// in the C library. Included only by files of this folder, which the build compiles for several
// instruction sets: everything is in the namespace of the instruction set, so that the linker never
// mixes them.
#pragma once

#include <cstdint>

namespace msrt::cpu::MSRT_CPU_ISA {

inline float AsFloat(int32_t bits) { return __builtin_bit_cast(float, bits); }
inline int32_t AsInt(float x) { return __builtin_bit_cast(int32_t, x); }

inline constexpr float kInfinity = __builtin_inff();

inline float Abs(float x) { return AsFloat(AsInt(x) & 0x7fffffff); }
inline float WithSign(float magnitude, float sign) {
  return AsFloat(AsInt(magnitude) | (AsInt(sign) & INT32_MIN));
}
// Each returns x where x is NaN.
inline float AtLeast(float x, float low) { return x < low ? low : x; }
inline float AtMost(float x, float high) { return x > high ? high : x; }

// 2^n for the integer n in [-126, 127].
inline float PowerOfTwo(int32_t n) { return AsFloat((n + 127) << 23); }

// e^r = 2^n * e^s with |s| <= ln(2)/2; the series of e^s has error 5e-9. The power is applied in
// two steps, which covers subnormal results and overflow to infinity.
inline float Exp(float x) {
  constexpr float kLog2E = 1.44269504f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  constexpr float kRound =
      12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  const float clamped = AtMost(AtLeast(x, -104.0f), 89.0f);
  const float shifted = clamped * kLog2E + kRound;
  const float n = shifted - kRound;
  const float s = (clamped - n * kLn2High) - n * kLn2Low;
  float p = 1.0f / 5040;
  p = p * s + 1.0f / 720;
  p = p * s + 1.0f / 120;
  p = p * s + 1.0f / 24;
  p = p * s + 1.0f / 6;
  p = p * s + 0.5f;
  p = p * s + 1.0f;
  p = p * s + 1.0f;
  const int32_t whole = AsInt(shifted) - AsInt(kRound), half = whole >> 1;
  return p * PowerOfTwo(half) * PowerOfTwo(whole - half);
}

// e^x - 1 for x <= 0 without losing the digits of small x.
inline float ExpMinusOne(float x) {
  float p = 1.0f / 720;
  p = p * x + 1.0f / 120;
  p = p * x + 1.0f / 24;
  p = p * x + 1.0f / 6;
  p = p * x + 0.5f;
  p = p * x + 1.0f;
  return x > -0.25f ? p * x : Exp(x) - 1.0f;
}

// log((1 + s) / (1 - s)) = 2 * atanh(s); |s| <= 1/3.
inline float TwiceAtanh(float s) {
  const float z = s * s;
  float p = 1.0f / 17;
  p = p * z + 1.0f / 15;
  p = p * z + 1.0f / 13;
  p = p * z + 1.0f / 11;
  p = p * z + 1.0f / 9;
  p = p * z + 1.0f / 7;
  p = p * z + 1.0f / 5;
  p = p * z + 1.0f / 3;
  return 2 * s + 2 * s * z * p;
}

// x = m * 2^e with m in [sqrt(1/2), sqrt(2)).
inline float Log(float x) {
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f,
                  kLeastNormal = 1.17549435e-38f;
  const bool subnormal = x < kLeastNormal;
  const float scaled = subnormal ? x * 8388608.0f : x;
  // In unsigned arithmetic, which wraps: negative numbers have no logarithm, but bits.
  const auto bits = static_cast<uint32_t>(AsInt(scaled));
  const int32_t exponent = static_cast<int32_t>(bits - 0x3f3504f3u) >> 23;
  const float m = AsFloat(static_cast<int32_t>(bits - (static_cast<uint32_t>(exponent) << 23)));
  const float e = static_cast<float>(exponent) - (subnormal ? 23.0f : 0.0f);
  const float value = (TwiceAtanh((m - 1) / (m + 1)) + e * kLn2Low) + e * kLn2High;
  const float finite = x == kInfinity ? x : value;
  const float positive = x > 0 ? finite : x == 0 ? -kInfinity : __builtin_nanf("");
  return x != x ? x : positive;
}

inline float Sigmoid(float x) { return 1.0f / (1.0f + Exp(-x)); }

// A polynomial for small x, where the quotient would lose digits.
inline float Tanh(float x) {
  const float z = x * x, a = Abs(x);
  float p = 2.046600410e-03f;
  p = p * z - 8.067670955e-03f;
  p = p * z + 2.165384518e-02f;
  p = p * z - 5.393750030e-02f;
  p = p * z + 1.333312189e-01f;
  p = p * z - 3.333332784e-01f;
  const float small = x + x * z * p;
  const float large = WithSign(1.0f - 2.0f / (Exp(2.0f * a) + 1.0f), x);
  return x != x ? x : a < 0.65f ? small : large;
}

// A polynomial below 0.92; above, 1 - e^-g(|x|) with a polynomial g for -log(erfc).
inline float Erf(float x) {
  const float z = x * x, a = Abs(x);
  float p = 8.392181576e-05f;
  p = p * z - 8.148385689e-04f;
  p = p * z + 5.201581344e-03f;
  p = p * z - 2.685964336e-02f;
  p = p * z + 1.128370046e-01f;
  p = p * z - 3.761263410e-01f;
  p = p * z + 1.128379167f;
  const float b = AtMost(a, 4.0f);
  float g = 1.734609263e-05f;
  g = g * b - 3.848255032e-04f;
  g = g * b + 3.900553771e-03f;
  g = g * b - 2.433276062e-02f;
  g = g * b + 1.069601281e-01f;
  g = g * b + 6.346271842e-01f;
  g = g * b + 1.128848763f;
  g = g * b - 3.088314966e-05f;
  const float large = WithSign(1.0f - Exp(-g), x);
  return x != x ? x : a < 0.92f ? x * p : large;
}

inline float Softplus(float x) {
  const float u = Exp(-Abs(x));
  return AtLeast(x, 0.0f) + TwiceAtanh(u / (2.0f + u));
}

}  // namespace msrt::cpu::MSRT_CPU_ISA
