// Elementwise functions of one input: tables of scalar functions over the element conversions of
// elements.h.
#include <array>
#include <cmath>
#include <cstring>

#include "delegates/reference/elements.h"
#include "delegates/reference/kernel.h"

namespace msrt::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// ---- floats -------------------------------------------------------------------------------------

// y = f(x, first, second), where `first` and `second` are the attributes that the row names (0
// where it names none).
struct FloatRow {
  std::string_view op;
  double (*f)(double x, double first, double second);
  std::string_view first = {}, second = {};
};

double Softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
double Gelu(double x) { return 0.5 * x * (1 + std::erf(x * 0.70710678118654752440)); }
double GeluTanh(double x) {
  return 0.5 * x * (1 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}
// NaN stays NaN in every comparison, unlike with std::max.
double Clamp(double x, double low, double high) {
  const double raised = x < low ? low : x;
  return raised > high ? high : raised;
}

constexpr FloatRow kFloatRows[] = {
    {"Ceil", [](double x, double, double) { return std::ceil(x); }},
    {"Floor", [](double x, double, double) { return std::floor(x); }},
    {"Round", [](double x, double, double) { return std::nearbyint(x); }},
    {"Sqrt", [](double x, double, double) { return std::sqrt(x); }},
    {"Reciprocal", [](double x, double, double) { return 1 / x; }},
    {"Exp", [](double x, double, double) { return std::exp(x); }},
    {"Log", [](double x, double, double) { return std::log(x); }},
    {"Erf", [](double x, double, double) { return std::erf(x); }},
    {"Sin", [](double x, double, double) { return std::sin(x); }},
    {"Cos", [](double x, double, double) { return std::cos(x); }},
    {"Tan", [](double x, double, double) { return std::tan(x); }},
    {"Asin", [](double x, double, double) { return std::asin(x); }},
    {"Acos", [](double x, double, double) { return std::acos(x); }},
    {"Atan", [](double x, double, double) { return std::atan(x); }},
    {"Sinh", [](double x, double, double) { return std::sinh(x); }},
    {"Cosh", [](double x, double, double) { return std::cosh(x); }},
    {"Tanh", [](double x, double, double) { return std::tanh(x); }},
    {"Asinh", [](double x, double, double) { return std::asinh(x); }},
    {"Acosh", [](double x, double, double) { return std::acosh(x); }},
    {"Atanh", [](double x, double, double) { return std::atanh(x); }},
    {"Sigmoid", [](double x, double, double) { return 1 / (1 + std::exp(-x)); }},
    {"LeakyRelu", [](double x, double alpha, double) { return x < 0 ? alpha * x : x; }, "alpha"},
    {"Elu", [](double x, double alpha, double) { return x < 0 ? alpha * std::expm1(x) : x; },
     "alpha"},
    {"Selu",
     [](double x, double alpha, double gamma) {
       return gamma * (x < 0 ? alpha * std::expm1(x) : x);
     },
     "alpha", "gamma"},
    {"Celu",
     [](double x, double alpha, double) {
       const double curve = alpha * std::expm1(x / alpha);
       return (x < 0 ? 0.0 : x) + (curve > 0 ? 0.0 : curve);
     },
     "alpha"},
    {"ThresholdedRelu", [](double x, double alpha, double) { return x > alpha ? x : 0.0; },
     "alpha"},
    {"HardSigmoid",
     [](double x, double alpha, double beta) { return Clamp(alpha * x + beta, 0, 1); }, "alpha",
     "beta"},
    {"HardSwish", [](double x, double, double) { return x * Clamp(x / 6 + 0.5, 0, 1); }},
    {"Softplus", [](double x, double, double) { return Softplus(x); }},
    {"Softsign", [](double x, double, double) { return x / (1 + std::abs(x)); }},
    {"Mish", [](double x, double, double) { return x * std::tanh(Softplus(x)); }},
    {"Swish", [](double x, double alpha, double) { return x / (1 + std::exp(-alpha * x)); },
     "alpha"},
    {"IsNaN", [](double x, double, double) { return std::isnan(x) ? 1.0 : 0.0; }},
};

// Converts each block of input 0 to W, applies f to each element, and stores the results in the
// output's type.
template <typename W, typename F>
Status Map(const KernelArgs& args, F f, bool saturate = true) {
  const TensorView &in = args.inputs[0], &out = args.outputs[0];
  return ForEachBlock(args.parallel, in.elements(), [&](int64_t first, int64_t count) {
    W values[kBlockElements];
    LoadElements(in.dtype, in.data, first, 1, count, values);
    for (int64_t i = 0; i < count; ++i) values[i] = f(values[i]);
    StoreElements(out.dtype, out.data, first, count, values, saturate);
  });
}

Status MapFloats(const KernelArgs& args) {
  const auto* row = std::find_if(std::begin(kFloatRows), std::end(kFloatRows),
                                 [&](const FloatRow& r) { return r.op == args.op.op(); });
  if (row == std::end(kFloatRows)) return InternalError("no float function for ", args.op.op());
  const double first = row->first.empty() ? 0 : args.op.Float(row->first),
               second = row->second.empty() ? 0 : args.op.Float(row->second);
  return Map<double>(args, [=](double x) { return row->f(x, first, second); });
}

Status MapGelu(const KernelArgs& args) {
  return Map<double>(args, args.op.String("approximate") == "tanh" ? GeluTanh : Gelu);
}

Status MapIsInf(const KernelArgs& args) {
  const bool negative = args.op.Int("detect_negative") != 0,
             positive = args.op.Int("detect_positive") != 0;
  return Map<double>(args, [=](double x) {
    return (x == kInfinity && positive) || (x == -kInfinity && negative) ? 1.0 : 0.0;
  });
}

// ---- floats and integers ----------------------------------------------------------------------

// Applies `f` to floats and `g` to 64-bit integers, whose results wrap to the element type.
template <typename F, typename G>
Status MapNumbers(const KernelArgs& args, F f, G g) {
  return DispatchWide(args.inputs[0].dtype, [&]<typename W>() {
    if constexpr (std::is_same_v<W, double>) return Map<double>(args, f);
    else return Map<W>(args, g);
  });
}

// Negates in unsigned arithmetic, where the least integer is its own negative.
template <typename W>
W WrappingNegative(W x) {
  return static_cast<W>(0 - static_cast<uint64_t>(x));
}

Status MapAbs(const KernelArgs& args) {
  return MapNumbers(
      args, [](double x) { return std::abs(x); },
      [](auto x) { return x < 0 ? WrappingNegative(x) : x; });
}
Status MapNeg(const KernelArgs& args) {
  return MapNumbers(
      args, [](double x) { return -x; }, [](auto x) { return WrappingNegative(x); });
}
Status MapSign(const KernelArgs& args) {
  return MapNumbers(
      args, [](double x) { return x > 0    ? 1.0
                                  : x < 0  ? -1.0
                                  : x == 0 ? 0.0
                                           : x; },
      [](auto x) { return static_cast<decltype(x)>((x > 0) - (x < 0)); });
}
Status MapRelu(const KernelArgs& args) {
  return MapNumbers(
      args, [](double x) { return x < 0 ? 0.0 : x; },
      [](auto x) { return x < 0 ? decltype(x){0} : x; });
}

Status MapShrink(const KernelArgs& args) {
  const double bias = args.op.Float("bias"), lambd = args.op.Float("lambd");
  const auto shrink = [=](double x) { return x < -lambd ? x + bias : x > lambd ? x - bias : 0.0; };
  return MapNumbers(args, shrink, [=](auto x) {
    const auto value = static_cast<double>(x);
    // Returns x itself if it is unchanged: double cannot represent every 64-bit integer.
    const bool unchanged = bias == 0 && (value < -lambd || value > lambd);
    return unchanged ? x : SaturateTo<decltype(x)>(shrink(value));
  });
}

Status MapBitwiseNot(const KernelArgs& args) {
  return Map<uint64_t>(args, [](uint64_t x) { return ~x; });
}
Status MapNot(const KernelArgs& args) {
  return Map<uint64_t>(args, [](uint64_t x) { return 1 - x; });
}

// ---- Clip ---------------------------------------------------------------------------------------

// Returns the bound in attribute `name` or in input `index`; `otherwise` if both are absent. A
// fractional bound of integers is rounded inwards.
template <typename W>
W ClipBound(const KernelArgs& args, std::string_view name, size_t index, W otherwise) {
  if (args.has_input(index)) {
    W bound;
    LoadElements(args.inputs[index].dtype, args.inputs[index].data, 0, 1, 1, &bound);
    return bound;
  }
  if (!args.op.Has(name)) return otherwise;
  const double bound = args.op.Float(name);
  if constexpr (std::is_same_v<W, double>) return bound;
  else return SaturateTo<W>(index == 1 ? std::ceil(bound) : std::floor(bound));
}

template <typename W>
Status Clip(const KernelArgs& args) {
  using Limits = std::numeric_limits<W>;
  const bool is_float = Limits::has_infinity;
  const W low = ClipBound<W>(args, "min", 1, is_float ? -Limits::infinity() : Limits::lowest());
  const W high = ClipBound<W>(args, "max", 2, is_float ? Limits::infinity() : Limits::max());
  return Map<W>(args, [=](W x) {
    const W raised = x < low ? low : x;
    return raised > high ? high : raised;
  });
}

Status MapClip(const KernelArgs& args) {
  return DispatchWide(args.inputs[0].dtype, [&]<typename W>() { return Clip<W>(args); });
}

// ---- Cast and Identity --------------------------------------------------------------------------

Status MapCast(const KernelArgs& args) {
  const bool saturate = args.op.Int("saturate") != 0;
  return DispatchWide(args.inputs[0].dtype, [&]<typename W>() {
    return Map<W>(
        args, [](W x) { return x; }, saturate);
  });
}

Status Copy(const KernelArgs& args) {
  const size_t bytes = BytesOf(args.inputs[0].dtype, args.inputs[0].elements());
  if (bytes != 0) std::memcpy(args.outputs[0].data, args.inputs[0].data, bytes);
  return OkStatus();
}

constexpr KernelDef kOtherKernels[] = {
    {"", "Abs", MapAbs},
    {"", "Neg", MapNeg},
    {"", "Sign", MapSign},
    {"", "Relu", MapRelu},
    {"", "Shrink", MapShrink},
    {"", "BitwiseNot", MapBitwiseNot},
    {"", "Not", MapNot},
    {"", "Clip", MapClip},
    {"", "Cast", MapCast},
    {"", "Identity", Copy},
    {"", "Gelu", MapGelu},
    {"", "IsInf", MapIsInf},
    {"msrt", "StopGradient", Copy},
};

// The kernels above and one for each row of floats.
constexpr auto kUnaryKernels = [] {
  std::array<KernelDef, std::size(kOtherKernels) + std::size(kFloatRows)> all{};
  auto* next = std::copy(std::begin(kOtherKernels), std::end(kOtherKernels), all.begin());
  for (const FloatRow& row : kFloatRows) *next++ = {"", row.op, MapFloats};
  return all;
}();

}  // namespace

std::span<const KernelDef> UnaryKernels() { return kUnaryKernels; }

}  // namespace msrt::reference
