// The functions that pointwise kernels, normalizations, products and convolutions apply to
// elements. `op` is the same for all threads of a launch, so its switch costs no divergence.
#pragma once

#include "delegates/cuda/kernels/arguments.h"
#include "delegates/cuda/kernels/elements.h"

namespace msrt::cuda {

// Functions of the math library in the type that is computed in.
DEVICE float ExpOf(float x) { return expf(x); }
DEVICE double ExpOf(double x) { return exp(x); }
DEVICE float Expm1Of(float x) { return expm1f(x); }
DEVICE double Expm1Of(double x) { return expm1(x); }
DEVICE float LogOf(float x) { return logf(x); }
DEVICE double LogOf(double x) { return log(x); }
DEVICE float Log1pOf(float x) { return log1pf(x); }
DEVICE double Log1pOf(double x) { return log1p(x); }
DEVICE float TanhOf(float x) { return tanhf(x); }
DEVICE double TanhOf(double x) { return tanh(x); }
DEVICE float ErfOf(float x) { return erff(x); }
DEVICE double ErfOf(double x) { return erf(x); }
DEVICE float SqrtOf(float x) { return sqrtf(x); }
DEVICE double SqrtOf(double x) { return sqrt(x); }
DEVICE float AbsOf(float x) { return fabsf(x); }
DEVICE double AbsOf(double x) { return fabs(x); }
DEVICE float PowOf(float x, float y) { return powf(x, y); }
DEVICE double PowOf(double x, double y) { return pow(x, y); }
DEVICE float FmodOf(float x, float y) { return fmodf(x, y); }
DEVICE double FmodOf(double x, double y) { return fmod(x, y); }

// NaN stays NaN in every comparison.
template <typename W>
DEVICE W ClampTo(W x, W low, W high) {
  const W raised = x < low ? low : x;
  return raised > high ? high : raised;
}

template <typename W>
DEVICE W SoftplusOf(W x) {
  const W positive = x < W{0} ? W{0} : x;
  return positive + Log1pOf(ExpOf(-AbsOf(x)));
}

#define MSRT_MATH(op, name, x)                       \
  case op:                                           \
    if constexpr (sizeof(W) == 4) return name##f(x); \
    else return name(x);

// Functions of floats that the math library has under two names.
template <typename W>
DEVICE W LibraryFunction(int32_t op, W x) {
  switch (op) {
    MSRT_MATH(kOpCeil, ceil, x)
    MSRT_MATH(kOpFloor, floor, x)
    MSRT_MATH(kOpRound, rint, x)
    MSRT_MATH(kOpSin, sin, x)
    MSRT_MATH(kOpCos, cos, x)
    MSRT_MATH(kOpTan, tan, x)
    MSRT_MATH(kOpAsin, asin, x)
    MSRT_MATH(kOpAcos, acos, x)
    MSRT_MATH(kOpAtan, atan, x)
    MSRT_MATH(kOpSinh, sinh, x)
    MSRT_MATH(kOpCosh, cosh, x)
    MSRT_MATH(kOpAsinh, asinh, x)
    MSRT_MATH(kOpAcosh, acosh, x)
    MSRT_MATH(kOpAtanh, atanh, x)
    default:
      return x;
  }
}
#undef MSRT_MATH

template <typename W>
DEVICE W FloatFunction(int32_t op, W x, W a, W b) {
  switch (op) {
    case kOpAbs:
      return AbsOf(x);
    case kOpNeg:
      return -x;
    case kOpSign:
      return x > 0 ? W{1} : x < 0 ? W{-1} : x == 0 ? W{0} : x;
    case kOpRelu:
      return x < 0 ? W{0} : x;
    case kOpSqrt:
      return SqrtOf(x);
    case kOpReciprocal:
      return 1 / x;
    case kOpExp:
      return ExpOf(x);
    case kOpLog:
      return LogOf(x);
    case kOpErf:
      return ErfOf(x);
    case kOpTanh:
      return TanhOf(x);
    case kOpSigmoid:
      return 1 / (1 + ExpOf(-x));
    case kOpLeakyRelu:
      return x < 0 ? a * x : x;
    case kOpElu:
      return x < 0 ? a * Expm1Of(x) : x;
    case kOpSelu:
      return b * (x < 0 ? a * Expm1Of(x) : x);
    case kOpCelu: {
      const W curve = a * Expm1Of(x / a);
      return (x < 0 ? W{0} : x) + (curve > 0 ? W{0} : curve);
    }
    case kOpThresholdedRelu:
      return x > a ? x : W{0};
    case kOpHardSigmoid:
      return ClampTo<W>(a * x + b, 0, 1);
    case kOpHardSwish:
      return x * ClampTo<W>(x / 6 + W(0.5), 0, 1);
    case kOpSoftplus:
      return SoftplusOf(x);
    case kOpSoftsign:
      return x / (1 + AbsOf(x));
    case kOpMish:
      return x * TanhOf(SoftplusOf(x));
    case kOpSwish:
      return x / (1 + ExpOf(-a * x));
    case kOpGelu:
      return W(0.5) * x * (1 + ErfOf(x * W(0.70710678118654752440)));
    case kOpGeluTanh:
      return W(0.5) * x * (1 + TanhOf(W(0.79788456080286535588) * (x + W(0.044715) * x * x * x)));
    case kOpIsNan:
      return x != x ? W{1} : W{0};
    case kOpIsInf: {  // a: positive counts; b: negative
      const bool infinite = AbsOf(x) == W(INFINITY);
      return infinite && ((x > 0 && a != 0) || (x < 0 && b != 0)) ? W{1} : W{0};
    }
    case kOpClip:
      return ClampTo(x, a, b);
    case kOpShrink:  // a: lambd; b: bias
      return x < -a ? x + b : x > a ? x - b : W{0};
    case kOpDivideBy:
      return x / a;
    default:
      return LibraryFunction(op, x);
  }
}

template <typename W>
DEVICE W FloatPair(int32_t op, W x, W y) {
  switch (op) {
    case kOpAdd:
      return x + y;
    case kOpSub:
      return x - y;
    case kOpMul:
      return x * y;
    case kOpDiv:
      return x / y;
    case kOpTruncMod:
      return FmodOf(x, y);
    case kOpFloorMod: {
      const W r = FmodOf(x, y);
      if (r == 0) return y < 0 || (y == 0 && 1 / y < 0) ? -W{0} : W{0};
      return (r < 0) != (y < 0) ? r + y : r;
    }
    case kOpPow:
      return PowOf(x, y);
    case kOpMax:
      return x > y || x != x ? x : y;
    case kOpMin:
      return x < y || x != x ? x : y;
    case kOpPRelu:
      return x < 0 ? x * y : x;
    case kOpEqual:
      return x == y ? W{1} : W{0};
    case kOpGreater:
      return x > y ? W{1} : W{0};
    case kOpGreaterOrEqual:
      return x >= y ? W{1} : W{0};
    case kOpLess:
      return x < y ? W{1} : W{0};
    case kOpLessOrEqual:
      return x <= y ? W{1} : W{0};
    case kOpClipLow:
      return x < y ? y : x;
    case kOpClipHigh:
      return x > y ? y : x;
    default:
      return x;
  }
}

}  // namespace msrt::cuda
