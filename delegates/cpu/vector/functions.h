// The functions of loops.h as types with a static operation, from which loops are made.
#pragma once

#include "delegates/cpu/loops.h"
#include "delegates/cpu/vector/math.h"

namespace msrt::cpu::MSRT_CPU_ISA {

struct Relu {
  static float Of(float x, float, float) { return AtLeast(x, 0.0f); }
};
struct LeakyRelu {
  static float Of(float x, float alpha, float) { return x < 0 ? alpha * x : x; }
};
struct SigmoidOf {
  static float Of(float x, float, float) { return Sigmoid(x); }
};
struct TanhOf {
  static float Of(float x, float, float) { return Tanh(x); }
};
struct HardSigmoid {
  static float Of(float x, float alpha, float beta) {
    return AtMost(AtLeast(alpha * x + beta, 0.0f), 1.0f);
  }
};
struct HardSwish {
  static float Of(float x, float, float) {
    return x * AtMost(AtLeast(x * (1.0f / 6) + 0.5f, 0.0f), 1.0f);
  }
};
struct Clip {
  static float Of(float x, float low, float high) { return AtMost(AtLeast(x, low), high); }
};
struct Gelu {
  static float Of(float x, float, float) { return 0.5f * x * (1.0f + Erf(x * 0.70710678f)); }
};
struct GeluTanh {
  static float Of(float x, float, float) {
    return 0.5f * x * (1.0f + Tanh(0.79788456f * (x + 0.044715f * x * x * x)));
  }
};
struct Elu {
  static float Of(float x, float alpha, float) { return x < 0 ? alpha * ExpMinusOne(x) : x; }
};
struct Swish {
  static float Of(float x, float alpha, float) { return x / (1.0f + Exp(-alpha * x)); }
};
// tanh(log(1 + w)) = (w^2 + 2w) / (w^2 + 2w + 2); beyond 20 the quotient is 1.
struct Mish {
  static float Of(float x, float, float) {
    const float w = Exp(AtMost(x, 20.0f)), n = w * (w + 2.0f);
    return x * (n / (n + 2.0f));
  }
};
struct SoftplusOf {
  static float Of(float x, float, float) { return Softplus(x); }
};
struct ExpOf {
  static float Of(float x, float, float) { return Exp(x); }
};
struct LogOf {
  static float Of(float x, float, float) { return Log(x); }
};
struct ErfOf {
  static float Of(float x, float, float) { return Erf(x); }
};
struct AbsOf {
  static float Of(float x, float, float) { return Abs(x); }
};
struct Neg {
  static float Of(float x, float, float) { return -x; }
};
struct Sqrt {
  static float Of(float x, float, float) { return __builtin_sqrtf(x); }
};
struct Reciprocal {
  static float Of(float x, float, float) { return 1.0f / x; }
};
struct Square {
  static float Of(float x, float, float) { return x * x; }
};
struct Round {
  static float Of(float x, float, float) { return __builtin_nearbyintf(x); }
};
struct Floor {
  static float Of(float x, float, float) { return __builtin_floorf(x); }
};
struct Ceil {
  static float Of(float x, float, float) { return __builtin_ceilf(x); }
};

// Slopes of Gelu: Phi(x) + x * phi(x) with the normal distribution Phi and its density phi, and
// the derivative of x * (1 + tanh(u)) / 2 with u = c * (x + k * x^3).
struct GeluSlope {
  static float Of(float x) {
    const float bell = 0.39894228f * Exp(-0.5f * x * x);
    return 0.5f * (1.0f + Erf(x * 0.70710678f)) + x * bell;
  }
};
struct GeluTanhSlope {
  static float Of(float x) {
    const float c = 0.79788456f, k = 0.044715f, t = Tanh(c * x * (1.0f + k * x * x));
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * c * (1.0f + 3.0f * k * x * x);
  }
};

struct Add {
  static float Of(float a, float b) { return a + b; }
};
struct Sub {
  static float Of(float a, float b) { return a - b; }
};
struct Mul {
  static float Of(float a, float b) { return a * b; }
};
struct Div {
  static float Of(float a, float b) { return a / b; }
};
// NaN in either operand is the result.
struct Max {
  static float Of(float a, float b) { return a > b || a != a ? a : b; }
};
struct Min {
  static float Of(float a, float b) { return a < b || a != a ? a : b; }
};

}  // namespace msrt::cpu::MSRT_CPU_ISA
