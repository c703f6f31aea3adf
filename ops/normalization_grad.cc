// Gradients of normalizations. BatchNormTraining and LayerNormalization have gradient ops, which
// read each tensor as often as necessary and no more; the others, and all second derivatives, are
// those of their formulas.
#include <algorithm>
#include <vector>

#include "ops/expansions.h"
#include "ops/families.h"
#include "ops/grad_builder.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

using AxisList = std::vector<int64_t>;

AxisList AxisRange(int64_t first, int64_t end) {
  AxisList axes;
  for (int64_t a = first; a < end; ++a) axes.push_back(a);
  return axes;
}
AxisList AllButChannels(int rank) {
  AxisList axes = AxisRange(2, rank);
  axes.insert(axes.begin(), 0);
  return axes;
}

Result<int> KnownRank(const GradBuilder& g, size_t input = 0) {
  const Type& x = g.type(g.input(input));
  if (!x.rank_known) return Unsupported("the rank of the input is not known; declare it");
  return x.rank();
}

ValueId MeanOver(GradBuilder& g, ValueId v, const AxisList& axes) {
  return axes.empty() ? v : g.Add("ReduceMean", {v}, {{"axes", axes}});
}

// A parameter of each channel, in the element type of `x` and with dims that broadcast to it.
ValueId PerChannel(GradBuilder& g, ValueId v, ValueId x) {
  const int rank = g.type(x).rank();
  if (v == kNoValue || rank <= 2) return g.CastTo(v, x);
  AxisList shape(static_cast<size_t>(rank) - 1, 1);
  shape[0] = -1;
  return g.Add("Reshape", {g.CastTo(v, x)}, {{"shape", std::move(shape)}});
}

// 1 / sqrt(variance + epsilon)
ValueId InverseDeviation(GradBuilder& g, ValueId variance) {
  return g.Over(1, g.Add("Sqrt", {g.Plus(variance, g.op().Float("epsilon"))}));
}

struct Statistics {
  ValueId mean, centred, variance;
};
Statistics StatisticsOver(GradBuilder& g, ValueId x, const AxisList& axes) {
  Statistics s;
  s.mean = MeanOver(g, x, axes);
  s.centred = g.Minus(x, s.mean);
  s.variance = MeanOver(g, g.Square(s.centred), axes);
  return s;
}
ValueId Standardized(GradBuilder& g, const Statistics& s) {
  return g.Times(s.centred, InverseDeviation(g, s.variance));
}

ValueId Affine(GradBuilder& g, ValueId v, ValueId scale, ValueId bias) {
  if (scale != kNoValue) v = g.Times(v, scale);
  return bias == kNoValue ? v : g.Plus(v, bias);
}

// Adds the gradient of input 0 that a gradient op computed to that of the other outputs, which the
// composition set.
void AddToFirst(GradBuilder& g, ValueId gradient) {
  const ValueId others = g.input_grads()[0];
  g.Set(0, others == kNoValue ? gradient : g.Plus(gradient, others));
}

}  // namespace

Status GradBatchNormalization(GradBuilder& g) {
  MSRT_RETURN_IF_ERROR(KnownRank(g).status());
  const ValueId x = g.input(0);
  const auto parameter = [&](size_t i) { return PerChannel(g, g.input(i), x); };
  const ValueId factor = g.Times(parameter(1), InverseDeviation(g, parameter(4)));
  const ValueId y = g.Plus(g.Times(g.Minus(x, parameter(3)), factor), parameter(2));
  g.SetByComposition({g.op().domain() == "msrt" ? AddActivation(g, y) : y});
  return OkStatus();
}

Status GradInstanceNormalization(GradBuilder& g) {
  MSRT_ASSIGN_OR_RETURN(const int rank, KnownRank(g));
  const ValueId x = g.input(0);
  const ValueId normalized = Standardized(g, StatisticsOver(g, x, AxisRange(2, rank)));
  g.SetByComposition(
      {Affine(g, normalized, PerChannel(g, g.input(1), x), PerChannel(g, g.input(2), x))});
  return OkStatus();
}

Status GradGroupNormalization(GradBuilder& g) {
  MSRT_RETURN_IF_ERROR(KnownRank(g).status());
  const ValueId x = g.input(0);
  const ValueId groups =
      g.Add("Reshape", {x}, {{"shape", AxisList{0, g.op().Int("num_groups"), -1}}});
  const ValueId normalized = g.ReshapeTo(Standardized(g, StatisticsOver(g, groups, {2})), x);
  g.SetByComposition(
      {Affine(g, normalized, PerChannel(g, g.input(1), x), PerChannel(g, g.input(2), x))});
  return OkStatus();
}

// The gradient op takes a scale of exactly the dims that are normalised.
Status GradLayerNormalization(GradBuilder& g) {
  MSRT_ASSIGN_OR_RETURN(const int rank, KnownRank(g));
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(g.op().Int("axis"), rank));
  const ValueId x = g.input(0), scale = g.input(1), bias = g.input(2);
  const Type xt = g.type(x), st = g.type(scale), bt = g.type(bias);
  const auto within = [&](const Type& t) { return t.rank_known && t.rank() <= rank - axis; };
  const bool inner_known = std::all_of(xt.dims.begin() + axis, xt.dims.end(), IsKnown);
  const bool fused =
      g.grad(0) != kNoValue && inner_known && within(st) && (bias == kNoValue || within(bt));
  const bool others = g.grad(1) != kNoValue || g.grad(2) != kNoValue;
  if (others || !fused) {
    const Statistics s = StatisticsOver(g, x, AxisRange(axis, rank));
    const ValueId inverse = InverseDeviation(g, s.variance);
    std::vector<ValueId> outputs = {kNoValue, kNoValue, kNoValue};
    if (!fused) outputs[0] = Affine(g, g.Times(s.centred, inverse), scale, bias);
    if (g.grad(1) != kNoValue) outputs[1] = g.CastTo(s.mean, g.output(1));
    if (g.grad(2) != kNoValue) outputs[2] = g.CastTo(inverse, g.output(2));
    g.SetByComposition(outputs);
  }
  if (!fused) return OkStatus();
  const AxisList inner(xt.dims.begin() + axis, xt.dims.end());
  ValueId whole_scale = scale;
  if (st.dims != Dims(inner)) whole_scale = g.Add("Expand", {scale, g.Ints(inner)});
  const auto gradients =
      g.AddNode("msrt", "LayerNormGrad", {g.grad(0), x, whole_scale},
                {{"axis", int64_t{axis}}, {"epsilon", g.op().Float("epsilon")}}, 3);
  if (!g.ok()) return g.status();
  if (g.wants(0)) AddToFirst(g, gradients[0]);
  if (g.wants(1)) g.SetSummed(1, gradients[1]);
  if (g.wants(2)) g.SetSummed(2, gradients[2]);
  return OkStatus();
}

Status GradRmsNormalization(GradBuilder& g) {
  MSRT_ASSIGN_OR_RETURN(const int rank, KnownRank(g));
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(g.op().Int("axis"), rank));
  const ValueId x = g.input(0);
  const ValueId square = MeanOver(g, g.Square(x), AxisRange(axis, rank));
  const ValueId normalized = g.Times(x, InverseDeviation(g, square));
  g.SetByComposition({g.Times(g.CastTo(normalized, g.input(1)), g.input(1))});
  return OkStatus();
}

// A line of zeros is divided by 1 and has a gradient of zero.
Status GradLpNormalization(GradBuilder& g) {
  MSRT_RETURN_IF_ERROR(KnownRank(g).status());
  const ValueId x = g.input(0);
  const bool squares = g.op().Int("p") == 2;
  const ValueId sum =
      g.SumOver(squares ? g.Square(x) : g.Add("Abs", {x}), {g.op().Int("axis")}, /*keep=*/true);
  const ValueId safe = g.Add("Where", {g.Add("Equal", {sum, g.Scalar(0, x)}), g.Scalar(1, x), sum});
  g.SetByComposition({g.Over(x, squares ? g.Add("Sqrt", {safe}) : safe)});
  return OkStatus();
}

Status GradMeanVarianceNormalization(GradBuilder& g) {
  constexpr double kDeviationEpsilon = 1e-9;  // ONNX adds it to the deviation
  MSRT_ASSIGN_OR_RETURN(const int rank, KnownRank(g));
  AxisList axes = {0, 2, 3};
  if (g.op().Has("axes")) axes.assign(g.op().Ints("axes").begin(), g.op().Ints("axes").end());
  if (axes.empty()) axes = AxisRange(0, rank);
  const Statistics s = StatisticsOver(g, g.input(0), axes);
  g.SetByComposition({g.Over(s.centred, g.Plus(g.Add("Sqrt", {s.variance}), kDeviationEpsilon))});
  return OkStatus();
}

// ---- msrt.BatchNormTraining ---------------------------------------------------------------------

// The mean and the variance of each channel of X.
Status GradBatchNormTraining(GradBuilder& g) {
  MSRT_ASSIGN_OR_RETURN(const int rank, KnownRank(g));
  const ValueId x = g.input(0);
  const AxisList axes = AllButChannels(rank);
  const auto flat = [&](ValueId v) {
    return g.CastTo(g.Add("Reshape", {v}, {{"shape", AxisList{-1}}}), g.input(1));
  };
  ValueId mean = g.output(1), variance = g.output(2);
  const bool missing = mean == kNoValue || variance == kNoValue;
  const bool others = g.grad(1) != kNoValue || g.grad(2) != kNoValue;
  if (missing || others) {
    const Statistics s = StatisticsOver(g, x, axes);
    mean = flat(s.mean), variance = flat(s.variance);
    if (others && g.wants(0)) g.SetByComposition({kNoValue, mean, variance});
  }
  if (g.grad(0) == kNoValue) return OkStatus();
  const auto gradients =
      g.AddNode("msrt", "BatchNormTrainingGrad", {g.grad(0), x, g.input(1), mean, variance},
                {{"epsilon", g.op().Float("epsilon")}}, 3);
  if (!g.ok()) return g.status();
  if (g.wants(0)) AddToFirst(g, gradients[0]);
  for (size_t i : {1, 2}) {
    if (g.wants(i)) g.Set(i, gradients[i]);
  }
  return OkStatus();
}

namespace {

// With n = (X - mean) / deviation, the gradients of scale and B are the sums of dY * n and dY, and
//   dX = scale / deviation * (dY - average of dY - n * average of dY * n)
struct NormGradients {
  ValueId dx, dscale, dbias;
};
// `scale` and the statistics broadcast to `x`; averages are over `normalized`, parameters sum over
// `summed`.
NormGradients ComposedGradients(GradBuilder& g, ValueId dy, ValueId centred, ValueId inverse,
                                ValueId scale, const AxisList& normalized, bool by_channel) {
  const ValueId n = g.Times(centred, inverse);
  const ValueId weighted = by_channel ? dy : g.Times(dy, scale);
  const ValueId rest = g.Minus(g.Minus(weighted, MeanOver(g, weighted, normalized)),
                               g.Times(n, MeanOver(g, g.Times(weighted, n), normalized)));
  const ValueId factor = by_channel ? g.Times(scale, inverse) : inverse;
  return {g.Times(rest, factor), g.Times(dy, n), dy};
}

Status GradBatchNormTrainingGrad(GradBuilder& g) {
  MSRT_ASSIGN_OR_RETURN(const int rank, KnownRank(g, 1));
  const ValueId x = g.input(1);
  const AxisList axes = AllButChannels(rank);
  const ValueId centred = g.Minus(x, PerChannel(g, g.input(3), x));
  const ValueId inverse = InverseDeviation(g, PerChannel(g, g.input(4), x));
  const NormGradients d =
      ComposedGradients(g, g.input(0), centred, inverse, PerChannel(g, g.input(2), x), axes, true);
  const auto summed = [&](ValueId v) { return g.CastTo(g.SumOver(v, axes, false), g.input(2)); };
  g.SetByComposition({d.dx, summed(d.dscale), summed(d.dbias)});
  return OkStatus();
}

Status GradLayerNormGrad(GradBuilder& g) {
  MSRT_ASSIGN_OR_RETURN(const int rank, KnownRank(g, 1));
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(g.op().Int("axis"), rank));
  const AxisList inner = AxisRange(axis, rank);
  const Statistics s = StatisticsOver(g, g.input(1), inner);
  const NormGradients d = ComposedGradients(
      g, g.input(0), s.centred, InverseDeviation(g, s.variance), g.input(2), inner, false);
  const auto summed = [&](ValueId v) {
    return axis == 0 ? v : g.SumOver(v, AxisRange(0, axis), false);
  };
  g.SetByComposition({d.dx, summed(d.dscale), summed(d.dbias)});
  return OkStatus();
}

// ---- inference and spaces -----------------------------------------------------------------------

Status SameDims(InferContext& c, size_t a, size_t b, Dims* merged) {
  if (c.input(a).rank_known) *merged = c.dims(a);
  if (!c.input(b).rank_known) return OkStatus();
  if (!c.input(a).rank_known) {
    *merged = c.dims(b);
    return OkStatus();
  }
  MSRT_RETURN_IF_ERROR(CheckRank(c, b, merged->rank()));
  for (int i = 0; i < merged->rank(); ++i) {
    MSRT_ASSIGN_OR_RETURN((*merged)[i], SameDim((*merged)[i], c.dims(b)[i],
                                                StrCat("dim ", i, " of the gradient and of X")));
  }
  return OkStatus();
}

Status InferBatchNormTrainingGrad(InferContext& c) {
  Dims x;
  MSRT_RETURN_IF_ERROR(SameDims(c, 0, 1, &x));
  if (!c.input(0).rank_known && !c.input(1).rank_known) {
    c.SetOutput(0, Type::UnrankedTensor(c.dtype(1)));
  } else if (x.rank() < 2) {
    return InvalidModel("X has shape ", x, ", must have rank 2 or more");
  }
  int64_t channels = x.rank() >= 2 ? x[1] : kUnknownDim;
  for (size_t i = 2; i < 5; ++i) {
    MSRT_RETURN_IF_ERROR(CheckRank(c, i, 1));
    if (!c.input(i).rank_known) continue;
    MSRT_ASSIGN_OR_RETURN(channels, SameDim(channels, c.dims(i)[0],
                                            StrCat("channels of X against elements of input ", i)));
  }
  if (x.rank() >= 2) {
    x[1] = channels;
    c.SetOutput(0, c.dtype(1), x);
  }
  c.SetOutput(1, c.dtype(2), Dims{channels});
  c.SetOutput(2, c.dtype(2), Dims{channels});
  return OkStatus();
}

Status ResolveBatchNormTrainingGrad(const OpView& op, ResolvedSpace* space) {
  const Dims& x = op.input(1).dims;
  for (int d = 0; d < x.rank(); ++d)
    space->axes.Add(d == 1 ? AxisKind::kParallel : AxisKind::kWhole, x[d]);
  space->inputs[0] = space->inputs[1] = space->outputs[0] = TensorMap::Same(x);
  for (size_t i = 2; i < 5; ++i) space->inputs[i].dims[0] = DimMap::Same(1, x[1]);
  for (size_t o = 1; o < op.output_count(); ++o) {
    if (op.has_output(o)) space->outputs[o].dims[0] = DimMap::Same(1, x[1]);
  }
  return OkStatus();
}

Status InferLayerNormGrad(InferContext& c) {
  Dims x;
  MSRT_RETURN_IF_ERROR(SameDims(c, 0, 1, &x));
  if (!c.input(0).rank_known && !c.input(1).rank_known) {
    for (size_t o = 0; o < 3; ++o) c.SetOutput(o, Type::UnrankedTensor(c.dtype(0)));
    return OkStatus();
  }
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(c.op().Int("axis"), x.rank()));
  Dims inner;
  for (int i = axis; i < x.rank(); ++i) inner.push_back(x[i]);
  MSRT_RETURN_IF_ERROR(CheckRank(c, 2, inner.rank()));
  for (int i = 0; c.input(2).rank_known && i < inner.rank(); ++i) {
    MSRT_ASSIGN_OR_RETURN(inner[i],
                          SameDim(inner[i], c.dims(2)[i],
                                  StrCat("dim ", i, " of scale and dim ", axis + i, " of X")));
    x[axis + i] = inner[i];
  }
  c.SetOutput(0, c.dtype(0), x);
  c.SetOutput(1, c.dtype(0), inner);
  c.SetOutput(2, c.dtype(0), inner);
  return OkStatus();
}

Cost NormGradCost(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  cost.flops = 12 * static_cast<double>(op.input(1).elements());
  return cost;
}

// ---- entries ------------------------------------------------------------------------------------

constexpr SpaceDef kBatchNormTrainingGradSpace{.resolve = ResolveBatchNormTrainingGrad};

constexpr AttrDef kGradEpsilon{
    .name = "epsilon", .kind = AttrKind::kFloat, .default_float = 1e-5, .min_float = 0};
constexpr AttrDef kBatchNormTrainingGradAttrs[] = {kGradEpsilon};
constexpr AttrDef kLayerNormGradAttrs[] = {
    kGradEpsilon,
    {.name = "axis", .default_int = -1, .min_int = -kMaxRank, .max_int = kMaxRank - 1}};
constexpr ParamDef kBatchNormTrainingGradInputs[] = {
    {.name = "dY", .types = kFloatTypes, .group = 1},
    {.name = "X", .types = kFloatTypes, .group = 1},
    {.name = "scale", .types = kFloatTypes, .group = 2},
    {.name = "mean", .types = kFloatTypes, .group = 2},
    {.name = "variance", .types = kFloatTypes, .group = 2},
};
constexpr ParamDef kLayerNormGradInputs[] = {
    {.name = "dY", .types = kFloatTypes, .group = 1},
    {.name = "X", .types = kFloatTypes, .group = 1},
    {.name = "scale", .types = kFloatTypes, .group = 1},
};

constexpr OpDef kNormalizationGradOps[] = {
    {.name = "BatchNormTrainingGrad",
     .domain = "msrt",
     .version = 1,
     .attrs = kBatchNormTrainingGradAttrs,
     .inputs = kBatchNormTrainingGradInputs,
     .max_outputs = 3,
     .infer = InferBatchNormTrainingGrad,
     .grad = GradBatchNormTrainingGrad,
     .space = &kBatchNormTrainingGradSpace,
     .expand = ExpandBatchNormTrainingGrad,
     .cost = NormGradCost},
    // The sums of the parameters' gradients run over the axes that its other result is cut along,
    // so that only its finer form can be cut.
    {.name = "LayerNormGrad",
     .domain = "msrt",
     .version = 1,
     .attrs = kLayerNormGradAttrs,
     .inputs = kLayerNormGradInputs,
     .max_outputs = 3,
     .infer = InferLayerNormGrad,
     .grad = GradLayerNormGrad,
     .expand = ExpandLayerNormGrad,
     .cost = NormGradCost},
};

}  // namespace

std::span<const OpDef> NormalizationGradOps() { return kNormalizationGradOps; }

}  // namespace msrt
