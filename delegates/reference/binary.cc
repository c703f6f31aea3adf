// Elementwise functions of two or more inputs that broadcast: tables of scalar functions over the
// element conversions of elements.h.
#include <cmath>

#include "delegates/reference/broadcast_runs.h"
#include "delegates/reference/dispatch.h"

namespace msrt::reference {
namespace {

template <typename W>
using Pair = W (*)(W, W);

// The same function in each type that kernels compute in; null where the op does not admit the
// type. Comparisons and logic return 1 or 0.
struct PairFunctions {
  Pair<double> on_double = nullptr;
  Pair<int64_t> on_signed = nullptr;
  Pair<uint64_t> on_unsigned = nullptr;

  template <typename W>
  Pair<W> On() const {
    if constexpr (std::is_same_v<W, double>) return on_double;
    else if constexpr (std::is_same_v<W, int64_t>) return on_signed;
    else return on_unsigned;
  }
};

// Uses one generic lambda for all three types.
template <typename F>
constexpr PairFunctions Everywhere(F f) {
  return {f, f, f};
}
// Computes signed integers as unsigned ones, whose overflow is defined.
template <typename F>
constexpr PairFunctions Wrapping(F) {
  return {[](double a, double b) { return F{}(a, b); },
          [](int64_t a, int64_t b) {
            return static_cast<int64_t>(F{}(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
          },
          [](uint64_t a, uint64_t b) { return F{}(a, b); }};
}
template <typename F>
constexpr PairFunctions OnIntegers(F f) {
  return {nullptr, f, f};
}

constexpr PairFunctions kAdd = Wrapping([](auto a, auto b) { return a + b; });
constexpr PairFunctions kSub = Wrapping([](auto a, auto b) { return a - b; });
constexpr PairFunctions kMul = Wrapping([](auto a, auto b) { return a * b; });
constexpr PairFunctions kMax =
    Everywhere([]<typename W>(W a, W b) { return a > b || a != a ? a : b; });  // NaN wins
constexpr PairFunctions kMin =
    Everywhere([]<typename W>(W a, W b) { return a < b || a != a ? a : b; });
constexpr PairFunctions kAnd = OnIntegers([]<typename W>(W a, W b) { return a & b; });
constexpr PairFunctions kOr = OnIntegers([]<typename W>(W a, W b) { return a | b; });
constexpr PairFunctions kXor = OnIntegers([]<typename W>(W a, W b) { return a ^ b; });
constexpr PairFunctions kEqual =
    Everywhere([]<typename W>(W a, W b) { return static_cast<W>(a == b); });
constexpr PairFunctions kGreater =
    Everywhere([]<typename W>(W a, W b) { return static_cast<W>(a > b); });
constexpr PairFunctions kGreaterOrEqual =
    Everywhere([]<typename W>(W a, W b) { return static_cast<W>(a >= b); });
constexpr PairFunctions kLess =
    Everywhere([]<typename W>(W a, W b) { return static_cast<W>(a < b); });
constexpr PairFunctions kLessOrEqual =
    Everywhere([]<typename W>(W a, W b) { return static_cast<W>(a <= b); });

// Folds all inputs from the left with the function, then maps each element with `finish`.
template <typename W, typename Finish>
Status FoldIn(const KernelArgs& args, Pair<W> function, Finish finish) {
  const TensorView& out = args.outputs[0];
  return ForEachRun(args, [&](int64_t first, int64_t count, std::span<const int64_t> begins,
                              std::span<const int64_t> steps) {
    W values[kBlockElements], others[kBlockElements];
    for (size_t k = 0; k < args.inputs.size(); ++k) {
      const TensorView& in = args.inputs[k];
      LoadElements(in.dtype, in.data, begins[k], steps[k], count, k == 0 ? values : others);
      for (int64_t i = 0; k != 0 && i < count; ++i) values[i] = function(values[i], others[i]);
    }
    for (int64_t i = 0; i < count; ++i) values[i] = finish(values[i]);
    StoreElements(out.dtype, out.data, first, count, values);
  });
}

Status Fold(const KernelArgs& args, const PairFunctions& functions) {
  return DispatchWide(args.inputs[0].dtype, [&]<typename W>() {
    return FoldIn<W>(args, functions.On<W>(), [](W x) { return x; });
  });
}
template <const PairFunctions& kFunctions>
Status FoldWith(const KernelArgs& args) {
  return Fold(args, kFunctions);
}

Status Mean(const KernelArgs& args) {
  const auto count = static_cast<double>(args.inputs.size());
  return FoldIn<double>(args, kAdd.on_double, [=](double sum) { return sum / count; });
}

// ---- division -----------------------------------------------------------------------------------

// Truncates towards zero. The least integer over -1 wraps to itself, where the processor would
// trap.
constexpr PairFunctions kDiv = {
    [](double a, double b) { return a / b; },
    [](int64_t a, int64_t b) {
      return b == -1 ? static_cast<int64_t>(0 - static_cast<uint64_t>(a)) : a / b;
    },
    [](uint64_t a, uint64_t b) { return a / b; }};

// The remainder with the sign of the divisor.
constexpr PairFunctions kFloorMod = {[](double a, double b) {
                                       const double r = std::fmod(a, b);
                                       if (r == 0) return std::copysign(0.0, b);
                                       return (r < 0) != (b < 0) ? r + b : r;
                                     },
                                     [](int64_t a, int64_t b) {
                                       const int64_t r = b == -1 ? 0 : a % b;
                                       return r != 0 && (r < 0) != (b < 0) ? r + b : r;
                                     },
                                     [](uint64_t a, uint64_t b) { return a % b; }};
// The remainder with the sign of the dividend.
constexpr PairFunctions kTruncMod = {
    [](double a, double b) { return std::fmod(a, b); },
    [](int64_t a, int64_t b) { return b == -1 ? int64_t{0} : a % b; },
    [](uint64_t a, uint64_t b) { return a % b; }};

// Refuses integer division by zero. Checks the divisors before anything is computed, so that the
// error names the first zero, whatever the number of threads. An empty output divides by none.
Status CheckDivisors(const KernelArgs& args) {
  const TensorView& divisors = args.inputs[1];
  if (WideTypeOf(divisors.dtype) == WideType::kDouble || args.outputs[0].elements() == 0)
    return OkStatus();
  return DispatchInt(divisors.dtype, [&]<typename T>() -> Status {
    const T *begin = divisors.As<T>(), *end = begin + divisors.elements();
    const T* zero = std::find(begin, end, T{0});
    if (zero == end) return OkStatus();
    return InvalidArgument("element ", zero - begin, " of input 1 (", divisors.dtype, divisors.dims,
                           ") is zero, which integers cannot be divided by");
  });
}

Status Div(const KernelArgs& args) {
  MSRT_RETURN_IF_ERROR(CheckDivisors(args));
  return Fold(args, kDiv);
}
Status Mod(const KernelArgs& args) {
  MSRT_RETURN_IF_ERROR(CheckDivisors(args));
  return Fold(args, args.op.Int("fmod") != 0 ? kTruncMod : kFloorMod);
}

// ---- Pow ----------------------------------------------------------------------------------------

// Wraps on overflow.
int64_t IntegerPower(int64_t base, uint64_t exponent) {
  uint64_t result = 1, power = static_cast<uint64_t>(base);
  for (uint64_t e = exponent; e != 0; e >>= 1) {
    if (e & 1) result *= power;
    power *= power;
  }
  return static_cast<int64_t>(result);
}

// Returns 1 / base^n, truncated; `largest` if that is infinite.
int64_t IntegerInversePower(int64_t base, int64_t exponent, int64_t largest) {
  if (base == 0) return largest;
  if (base == 1) return 1;
  return base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
}

template <typename W, typename F>
Status PowIn(const KernelArgs& args, F power) {
  const TensorView &base = args.inputs[0], &exponent = args.inputs[1], &out = args.outputs[0];
  return ForEachRun(args, [&](int64_t first, int64_t count, std::span<const int64_t> begins,
                              std::span<const int64_t> steps) {
    W bases[kBlockElements], exponents[kBlockElements];
    LoadElements(base.dtype, base.data, begins[0], steps[0], count, bases);
    LoadElements(exponent.dtype, exponent.data, begins[1], steps[1], count, exponents);
    for (int64_t i = 0; i < count; ++i) bases[i] = power(bases[i], exponents[i]);
    StoreElements(out.dtype, out.data, first, count, bases);
  });
}

Status Pow(const KernelArgs& args) {
  const bool integers = WideTypeOf(args.inputs[0].dtype) != WideType::kDouble &&
                        WideTypeOf(args.inputs[1].dtype) != WideType::kDouble;
  if (!integers) return PowIn<double>(args, [](double a, double b) { return std::pow(a, b); });
  const int64_t largest = args.outputs[0].dtype == DType::kI32
                              ? std::numeric_limits<int32_t>::max()
                              : std::numeric_limits<int64_t>::max();
  const bool may_be_negative = WideTypeOf(args.inputs[1].dtype) == WideType::kSigned;
  return PowIn<int64_t>(args, [=](int64_t a, int64_t b) {
    return may_be_negative && b < 0 ? IntegerInversePower(a, b, largest)
                                    : IntegerPower(a, static_cast<uint64_t>(b));
  });
}

// ---- the rest -----------------------------------------------------------------------------------

constexpr PairFunctions kPRelu = {
    [](double x, double slope) { return x < 0 ? x * slope : x; },
    [](int64_t x, int64_t slope) { return x < 0 ? kMul.on_signed(x, slope) : x; },
    [](uint64_t x, uint64_t) { return x; }};

// A count that is negative or not less than the width shifts every bit out; a right shift of a
// negative number fills in ones. Bits beyond the width of the element fall off when the result is
// stored.
constexpr uint64_t ShiftLeft(uint64_t x, uint64_t n) { return n > 63 ? 0 : x << n; }
constexpr PairFunctions kShiftLeft = {
    nullptr,
    [](int64_t x, int64_t n) {
      return static_cast<int64_t>(ShiftLeft(static_cast<uint64_t>(x), static_cast<uint64_t>(n)));
    },
    ShiftLeft};
constexpr PairFunctions kShiftRight = {
    nullptr, [](int64_t x, int64_t n) { return x >> (n < 0 || n > 63 ? 63 : n); },
    [](uint64_t x, uint64_t n) { return n > 63 ? uint64_t{0} : x >> n; }};

Status BitShift(const KernelArgs& args) {
  return Fold(args, args.op.String("direction") == "LEFT" ? kShiftLeft : kShiftRight);
}

Status Where(const KernelArgs& args) {
  return DispatchWidth(args.outputs[0].dtype, [&]<typename T>() -> Status {
    const auto* condition = args.inputs[0].As<uint8_t>();
    const T *x = args.inputs[1].As<T>(), *y = args.inputs[2].As<T>();
    T* out = args.outputs[0].As<T>();
    return ForEachRun(args, [&](int64_t first, int64_t count, std::span<const int64_t> begins,
                                std::span<const int64_t> steps) {
      for (int64_t i = 0; i < count; ++i) {
        const bool chosen = condition[begins[0] + i * steps[0]] != 0;
        out[first + i] = chosen ? x[begins[1] + i * steps[1]] : y[begins[2] + i * steps[2]];
      }
    });
  });
}

constexpr KernelDef kBinaryKernels[] = {
    {"", "Add", FoldWith<kAdd>},
    {"", "Sub", FoldWith<kSub>},
    {"", "Mul", FoldWith<kMul>},
    {"", "Div", Div},
    {"", "Mod", Mod},
    {"", "Pow", Pow},
    {"", "Max", FoldWith<kMax>},
    {"", "Min", FoldWith<kMin>},
    {"", "Sum", FoldWith<kAdd>},
    {"", "Mean", Mean},
    {"", "PRelu", FoldWith<kPRelu>},
    {"", "BitShift", BitShift},
    {"", "BitwiseAnd", FoldWith<kAnd>},
    {"", "BitwiseOr", FoldWith<kOr>},
    {"", "BitwiseXor", FoldWith<kXor>},
    {"", "And", FoldWith<kAnd>},
    {"", "Or", FoldWith<kOr>},
    {"", "Xor", FoldWith<kXor>},
    {"", "Equal", FoldWith<kEqual>},
    {"", "Greater", FoldWith<kGreater>},
    {"", "GreaterOrEqual", FoldWith<kGreaterOrEqual>},
    {"", "Less", FoldWith<kLess>},
    {"", "LessOrEqual", FoldWith<kLessOrEqual>},
    {"", "Where", Where},
};

}  // namespace

std::span<const KernelDef> BinaryKernels() { return kBinaryKernels; }

}  // namespace msrt::reference
