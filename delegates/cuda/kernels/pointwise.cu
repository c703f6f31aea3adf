// Element-wise functions, comparisons and casts with broadcasting, and chains of them: a thread
// loads an element, applies the steps of the arguments one after another and stores the result
// once. Types and steps are the same for all threads, so nothing diverges; what a step costs is
// hidden behind the memory.
#include "delegates/cuda/kernels/index.h"
#include "delegates/cuda/kernels/pointwise.h"

namespace msrt::cuda {
namespace {

// W is int64_t or uint64_t; results wrap to the element type when they are stored.
template <typename W>
DEVICE W IntegerFunction(int32_t op, W x, const PointwiseStep& step) {
  switch (op) {
    case kOpAbs:
      return x < 0 ? static_cast<W>(0 - static_cast<uint64_t>(x)) : x;
    case kOpNeg:
      return static_cast<W>(0 - static_cast<uint64_t>(x));
    case kOpSign:
      return static_cast<W>((x > 0) - (x < 0));
    case kOpRelu:
      return x < 0 ? W{0} : x;
    case kOpNot:
      return 1 - x;
    case kOpBitwiseNot:
      return ~x;
    case kOpClip:
      return ClampTo(x, static_cast<W>(step.low), static_cast<W>(step.high));
    default:
      return x;
  }
}

// Wraps on overflow. The reciprocal of a power is truncated; `largest` if it is infinite.
template <typename W>
DEVICE W IntegerPower(W base, W exponent, W largest) {
  if (exponent < 0) {
    if (base == 0) return largest;
    if (base == 1) return 1;
    return base == static_cast<W>(-1) ? (exponent % 2 == 0 ? 1 : static_cast<W>(-1)) : W{0};
  }
  uint64_t result = 1, power = static_cast<uint64_t>(base);
  for (uint64_t e = static_cast<uint64_t>(exponent); e != 0; e >>= 1) {
    if (e & 1) result *= power;
    power *= power;
  }
  return static_cast<W>(result);
}

template <typename W>
DEVICE W IntegerQuotient(int32_t op, W x, W y) {
  constexpr bool kSigned = static_cast<W>(-1) < 0;
  if (kSigned && y == static_cast<W>(-1))  // where the least integer would overflow
    return op == kOpDiv ? static_cast<W>(0 - static_cast<uint64_t>(x)) : W{0};
  if (op == kOpDiv) return x / y;
  const W r = x % y;
  return op == kOpFloorMod && r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

template <typename W>
DEVICE W IntegerPair(int32_t op, W x, W y, const PointwiseStep& step) {
  const auto ux = static_cast<uint64_t>(x), uy = static_cast<uint64_t>(y);
  switch (op) {
    case kOpAdd:
      return static_cast<W>(ux + uy);
    case kOpSub:
      return static_cast<W>(ux - uy);
    case kOpMul:
      return static_cast<W>(ux * uy);
    case kOpPow:
      return IntegerPower(x, y, static_cast<W>(step.high));
    case kOpMax:
      return x > y ? x : y;
    case kOpMin:
      return x < y ? x : y;
    case kOpPRelu:
      return x < 0 ? static_cast<W>(ux * uy) : x;
    case kOpShiftLeft:
      return uy > 63 ? W{0} : static_cast<W>(ux << uy);
    case kOpShiftRight:
      return uy > 63 ? (x < 0 ? static_cast<W>(-1) : W{0}) : x >> uy;
    case kOpAnd:
      return x & y;
    case kOpOr:
      return x | y;
    case kOpXor:
      return x ^ y;
    case kOpEqual:
      return x == y;
    case kOpGreater:
      return x > y;
    case kOpGreaterOrEqual:
      return x >= y;
    case kOpLess:
      return x < y;
    case kOpLessOrEqual:
      return x <= y;
    case kOpClipLow:
      return x < y ? y : x;
    case kOpClipHigh:
      return x > y ? y : x;
    default:
      return x;
  }
}

template <typename W>
DEVICE W LoadOperand(const PointwiseArgs& args, int operand, uint32_t i) {
  const PointwiseOperand& o = args.operand[operand];
  return Load<W>(
      o.type, o.data,
      args.contiguous != 0 ? static_cast<int64_t>(i) : OffsetIn(args.space, o.strides, i));
}

template <typename W>
DEVICE W ApplyStep(const PointwiseArgs& args, const PointwiseStep& step, W x, uint32_t i) {
  if (step.operand < 0) {
    if constexpr (kIsFloatType<W>)
      return FloatFunction<W>(step.op, x, static_cast<W>(step.a), static_cast<W>(step.b));
    else return IntegerFunction<W>(step.op, x, step);
  }
  if (step.op == kOpWhere) return LoadOperand<W>(args, step.operand + (x != 0 ? 0 : 1), i);
  const W y = LoadOperand<W>(args, step.operand, i);
  if constexpr (kIsFloatType<W>) {
    return FloatPair<W>(step.op, x, y);
  } else {
    if (step.op != kOpDiv && step.op != kOpFloorMod && step.op != kOpTruncMod)
      return IntegerPair<W>(step.op, x, y, step);
    if (y != 0) return IntegerQuotient<W>(step.op, x, y);
    ReportFault(args.fault, kFaultDivision, i);
    return 0;
  }
}

template <typename W>
DEVICE void Pointwise(const PointwiseArgs& args) {
  for (uint32_t i = FirstElement(); i < args.space.elements; i += ElementStep()) {
    W x = LoadOperand<W>(args, 0, i);
    for (int s = 0; s < args.steps; ++s) x = ApplyStep<W>(args, args.step[s], x, i);
    Store<W>(args.out_type, args.out, i, x);
  }
}

}  // namespace

BOUNDED_KERNEL(256, pointwise_f32, PointwiseArgs args) { Pointwise<float>(args); }
BOUNDED_KERNEL(256, pointwise_f64, PointwiseArgs args) { Pointwise<double>(args); }
BOUNDED_KERNEL(256, pointwise_i64, PointwiseArgs args) { Pointwise<int64_t>(args); }
BOUNDED_KERNEL(256, pointwise_u64, PointwiseArgs args) { Pointwise<uint64_t>(args); }

}  // namespace msrt::cuda
