// Windows and mel weights from their formulas in double precision.
#include <cmath>
#include <numbers>
#include <vector>

#include "delegates/reference/elements.h"
#include "delegates/reference/kernel.h"

namespace msrt::reference {
namespace {

// a - b cos(2 pi i / n) + c cos(4 pi i / n)
struct CosineSum {
  double a, b, c;
};

Status CosineWindow(const KernelArgs& args, const CosineSum& sum) {
  const TensorView& out = args.outputs[0];
  const int64_t size = out.dims[0], period = args.op.Int("periodic") != 0 ? size : size - 1;
  std::vector<double> window(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) {
    // A symmetric window of one sample is its middle.
    const double phase =
        period == 0 ? std::numbers::pi
                    : 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(period);
    window[static_cast<size_t>(i)] = sum.a - sum.b * std::cos(phase) + sum.c * std::cos(2 * phase);
  }
  StoreElements(out.dtype, out.data, 0, size, window.data());
  return OkStatus();
}

Status HannWindow(const KernelArgs& args) { return CosineWindow(args, {0.5, 0.5, 0}); }
Status HammingWindow(const KernelArgs& args) {
  return CosineWindow(args, {25.0 / 46, 21.0 / 46, 0});
}
Status BlackmanWindow(const KernelArgs& args) { return CosineWindow(args, {0.42, 0.5, 0.08}); }

double HertzFrom(const KernelArgs& args, std::string_view attr, size_t input) {
  if (!args.has_input(input)) return args.op.Float(attr);
  double value;
  LoadElements(args.inputs[input].dtype, args.inputs[input].data, 0, 1, 1, &value);
  return value;
}

double CountFrom(const KernelArgs& args, std::string_view attr, size_t input) {
  const TensorView* given = args.has_input(input) ? &args.inputs[input] : nullptr;
  return static_cast<double>(given != nullptr ? IntValues(given->dtype, given->data, 1)[0]
                                              : args.op.Int(attr));
}

constexpr double kMelScale = 2595, kMelCorner = 700;
double MelOf(double hertz) { return kMelScale * std::log10(1 + hertz / kMelCorner); }
double HertzOf(double mel) { return kMelCorner * (std::pow(10, mel / kMelScale) - 1); }

// Each band is a triangle from 0 at `left` over 1 at `peak` to 0 at `right`, all of them bins.
double TriangleAt(double bin, double left, double peak, double right) {
  if (bin == peak) return 1;
  if (bin > left && bin < peak) return (bin - left) / (peak - left);
  return bin > peak && bin < right ? (right - bin) / (right - peak) : 0;
}

Status MelWeightMatrix(const KernelArgs& args) {
  const TensorView& out = args.outputs[0];
  const int64_t bins = out.dims[0], bands = out.dims[1];
  const double length = CountFrom(args, "dft_length", 1), rate = CountFrom(args, "sample_rate", 2);
  const double lower = HertzFrom(args, "lower_edge_hertz", 3),
               upper = HertzFrom(args, "upper_edge_hertz", 4);
  if (!(lower >= 0 && upper >= lower && std::isfinite(upper))) {
    return InvalidArgument("the band from ", lower, " to ", upper,
                           " hertz: edges must be finite, at least 0, and the lower one no higher");
  }
  const double step = (MelOf(upper) - MelOf(lower)) / static_cast<double>(bands + 2);
  const auto bin_of = [&](int64_t edge) {
    return std::floor((length + 1) * HertzOf(MelOf(lower) + step * static_cast<double>(edge)) /
                      rate);
  };
  std::vector<double> weights(static_cast<size_t>(bins * bands));
  for (int64_t band = 0; band < bands; ++band) {
    const double left = bin_of(band), peak = bin_of(band + 1), right = bin_of(band + 2);
    for (int64_t bin = 0; bin < bins; ++bin) {
      weights[static_cast<size_t>(bin * bands + band)] =
          TriangleAt(static_cast<double>(bin), left, peak, right);
    }
  }
  StoreElements(out.dtype, out.data, 0, out.elements(), weights.data());
  return OkStatus();
}

constexpr KernelDef kSignalTableKernels[] = {
    {"", "HannWindow", HannWindow},
    {"", "HammingWindow", HammingWindow},
    {"", "BlackmanWindow", BlackmanWindow},
    {"", "MelWeightMatrix", MelWeightMatrix},
};

}  // namespace

std::span<const KernelDef> SignalTableKernels() { return kSignalTableKernels; }

}  // namespace msrt::reference
