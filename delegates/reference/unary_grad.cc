// ReluGrad and GeluGrad in double; a result is rounded once.
#include <cmath>
#include <numbers>

#include "delegates/reference/elements.h"
#include "delegates/reference/kernel.h"

namespace msrt::reference {
namespace {

// f(dy, other) for every pair of elements.
template <typename F>
Status MapPairs(const KernelArgs& args, F f) {
  const TensorView &dy = args.inputs[0], &other = args.inputs[1], &out = args.outputs[0];
  return ForEachBlock(args.parallel, dy.elements(), [&](int64_t first, int64_t count) {
    double a[kBlockElements], b[kBlockElements];
    LoadElements(dy.dtype, dy.data, first, 1, count, a);
    LoadElements(other.dtype, other.data, first, 1, count, b);
    for (int64_t i = 0; i < count; ++i) a[i] = f(a[i], b[i]);
    StoreElements(out.dtype, out.data, first, count, a);
  });
}

Status ReluGrad(const KernelArgs& args) {
  return MapPairs(args, [](double dy, double y) { return y > 0 ? dy : 0.0; });
}

// Phi(x) + x * phi(x) with the normal distribution Phi and its density phi.
double GeluSlope(double x) {
  constexpr double kDensity = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)) + x * kDensity * std::exp(-0.5 * x * x);
}

// The derivative of x * (1 + tanh(u)) / 2 with u = c * (x + k * x^3).
double GeluTanhSlope(double x) {
  constexpr double kC = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kK = 0.044715;
  const double t = std::tanh(kC * x * (1 + kK * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kC * (1 + 3 * kK * x * x);
}

Status GeluGrad(const KernelArgs& args) {
  const auto slope = args.op.String("approximate") == "tanh" ? GeluTanhSlope : GeluSlope;
  return MapPairs(args, [slope](double dy, double x) { return dy * slope(x); });
}

constexpr KernelDef kUnaryGradKernels[] = {{"msrt", "ReluGrad", ReluGrad},
                                           {"msrt", "GeluGrad", GeluGrad}};

}  // namespace

std::span<const KernelDef> UnaryGradKernels() { return kUnaryGradKernels; }

}  // namespace msrt::reference
