// Gradients of msrt.Moments, msrt.Normalize and LRN.
#include <algorithm>

#include "ops/grad_builder.h"
#include "ops/gradients.h"
#include "ops/infer.h"

namespace msrt {

// (d_mean + 2 * (x - mean) * d_variance) / count
Status GradMoments(GradBuilder& g) {
  const Type x = g.type(g.input(0));
  ValueId sum = g.grad(0);
  if (g.grad(1) != kNoValue) {
    ValueId mean = g.output(0);
    if (mean == kNoValue) mean = g.AddNode("msrt", "Moments", {g.input(0)}, g.op().attrs(), 2)[0];
    const ValueId centered = g.Minus(g.CastTo(g.input(0), mean), mean);
    const ValueId spread = g.Times(centered, g.Times(g.grad(1), 2));
    sum = sum == kNoValue ? spread : g.Plus(spread, sum);
  }
  if (!x.rank_known) return Unsupported("the rank of the input is not known; declare it");
  MSRT_ASSIGN_OR_RETURN(const std::vector<int> axes, NormalizeAxes(g.op().Ints("axes"), x.rank()));
  int64_t count = 1;
  for (int a : axes) count = IsKnown(count) && IsKnown(x.dims[a]) ? count * x.dims[a] : kUnknownDim;
  if (IsKnown(count)) {
    sum = g.Times(sum, 1 / static_cast<double>(std::max<int64_t>(count, 1)));
  } else {
    const auto elements = [&](ValueId v) { return g.CastTo(g.Add("Size", {v}), sum); };
    const ValueId reduced = g.output(0) != kNoValue ? g.output(0) : g.output(1);
    sum = g.Times(sum, g.Over(elements(reduced), elements(g.input(0))));
  }
  g.Set(0, g.ExpandTo(g.CastTo(sum, g.input(0)), g.input(0)));
  return OkStatus();
}

Status GradNormalize(GradBuilder& g) {
  const ValueId mean = g.input(1), variance = g.input(2);
  const ValueId deviation = g.Add("Sqrt", {g.Plus(variance, g.op().Float("epsilon"))});
  ValueId y = g.Over(g.Minus(g.CastTo(g.input(0), mean), mean), deviation);
  if (g.has_input(3)) y = g.Times(y, g.CastTo(g.input(3), mean));
  if (g.has_input(4)) y = g.Plus(y, g.CastTo(g.input(4), mean));
  g.SetByComposition({g.CastTo(y, g.input(0))});
  return OkStatus();
}

// y = x / (bias + alpha / size * sum of squares)^beta. The sums over neighbouring channels are a
// product with a band matrix.
Status GradLrn(GradBuilder& g) {
  const Type type = g.type(g.input(0));
  if (!type.rank_known || !IsKnown(type.dims[1]))
    return Unsupported("the number of channels is not known; declare it");
  const int64_t channels = type.dims[1], size = g.op().Int("size"), before = (size - 1) / 2,
                after = size / 2;
  constexpr int64_t kMaxChannels = 1 << 14;  // the matrix has their square
  if (channels > kMaxChannels)
    return Unsupported("the input has ", channels, " channels; at most ", kMaxChannels,
                       " can be differentiated");
  std::vector<float> band(static_cast<size_t>(channels * channels));
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t last = after < channels - c ? c + after : channels - 1;
    for (int64_t i = std::max<int64_t>(c - before, 0); i <= last; ++i)
      band[static_cast<size_t>(c * channels + i)] = 1;
  }
  const ValueId x = g.input(0);
  const ValueId matrix = g.CastTo(
      g.Constant("band", ConstTensor::Of<float>(DType::kF32, {channels, channels}, band)), x);
  const ValueId square = g.Square(x);
  std::vector<int64_t> flat{0, 0, -1};  // 0: the dim of the input
  if (type.concrete()) flat = {type.dims[0], channels, type.dims.product(2, type.rank())};
  AttrList shape{{"shape", flat}, {"allowzero", int64_t{type.concrete()}}};
  const ValueId sums = g.Add("MatMul", {matrix, g.Add("Reshape", {square}, std::move(shape))});
  const ValueId scaled =
      g.Times(g.ReshapeTo(sums, x), g.op().Float("alpha") / static_cast<double>(size));
  const ValueId base = g.Plus(scaled, g.op().Float("bias"));
  const ValueId power = g.Add("Pow", {base, g.Scalar(-g.op().Float("beta"), base)});
  g.SetByComposition({g.Times(x, power)});
  return OkStatus();
}

}  // namespace msrt
