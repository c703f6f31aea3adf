// Normalizations. An axis of X that an op normalises over stays whole, all others are parallel;
// BatchNormalization, whose statistics are inputs, may be cut anywhere. GroupNormalization has an
// axis of groups in place of channels.
#include "ops/activation.h"
#include "ops/expansions.h"
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

#include <array>

namespace msrt {
namespace {

// ---- inference ----------------------------------------------------------------------------------

// Input `input` must have one element for each channel; `channels` becomes known if it was not.
Status CheckPerChannel(const InferContext& c, size_t input, int64_t* channels) {
  MSRT_RETURN_IF_ERROR(CheckRank(c, input, 1));
  if (!c.input(input).rank_known) return OkStatus();
  MSRT_ASSIGN_OR_RETURN(*channels,
                        SameDim(*channels, c.dims(input)[0],
                                StrCat("channels of X against elements of input ", input)));
  return OkStatus();
}

// Output 0 has the type of X; the parameters may make its channel dim known.
Status InferPerChannel(InferContext& c, int min_rank) {
  Type x = c.input(0);
  if (x.rank_known && x.rank() < min_rank)
    return InvalidModel("X has shape ", x.dims, ", must have rank ", min_rank, " or more");
  const bool has_channels = x.rank_known && x.rank() >= 2;
  int64_t channels = has_channels ? x.dims[1] : x.rank_known ? 1 : kUnknownDim;
  for (size_t i = 1; i < c.op().input_count(); ++i)
    MSRT_RETURN_IF_ERROR(CheckPerChannel(c, i, &channels));
  if (has_channels) x.dims[1] = channels;
  c.SetOutput(0, std::move(x));
  return OkStatus();
}

Status InferBatchNormalization(InferContext& c) {
  return InferPerChannel(c, 1);
}  // one dim is a batch of one channel

// The statistics of the batch have the element type of the parameters.
Status InferBatchNormTraining(InferContext& c) {
  MSRT_RETURN_IF_ERROR(InferPerChannel(c, 2));
  int64_t channels = c.input(0).rank_known ? c.dims(0)[1] : kUnknownDim;
  for (size_t i : {1, 2}) MSRT_RETURN_IF_ERROR(CheckPerChannel(c, i, &channels));
  c.SetOutput(1, c.dtype(1), Dims{channels});
  c.SetOutput(2, c.dtype(1), Dims{channels});
  return OkStatus();
}

Status InferInstanceNormalization(InferContext& c) { return InferPerChannel(c, 3); }

Status CheckStashType(const InferContext& c) {
  const DType type = c.op().Dtype("stash_type");
  if (type == DType::kNone || IsFloat(type)) return OkStatus();
  return InvalidModel("stash_type = ", type, ", must be one of ", kFloatTypes.Names());
}

Status InferGroupNormalization(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckStashType(c));
  const int64_t groups = c.op().Int("num_groups");
  if (c.input(0).rank_known && c.input(0).rank() >= 2 && IsKnown(c.dims(0)[1]) &&
      c.dims(0)[1] % groups != 0) {
    return InvalidModel("num_groups = ", groups, ", must divide the ", c.dims(0)[1],
                        " channels of X");
  }
  return InferPerChannel(c, 2);
}

Status CheckScaleAndBias(const InferContext& c) {
  constexpr std::string_view kNames[] = {"X", "Scale", "B"};
  for (size_t i = 1; i < c.op().input_count(); ++i) {
    if (c.has_input(i) && c.input(i).rank_known)
      MSRT_RETURN_IF_ERROR(CheckBroadcastsTo(c.dims(i), c.dims(0), kNames[i]));
  }
  return OkStatus();
}

Status InferLayerNormalization(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckStashType(c));
  const DType stash = c.op().Has("stash_type") ? c.op().Dtype("stash_type") : DType::kF32;
  c.SetOutput(0, c.input(0));
  if (!c.input(0).rank_known) {
    c.SetOutput(1, Type::UnrankedTensor(stash));
    c.SetOutput(2, Type::UnrankedTensor(stash));
    return OkStatus();
  }
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(c.op().Int("axis"), c.input(0).rank()));
  MSRT_RETURN_IF_ERROR(CheckScaleAndBias(c));
  Dims statistics = c.dims(0);
  std::fill(statistics.begin() + axis, statistics.end(), 1);
  c.SetOutput(1, stash, statistics);
  c.SetOutput(2, stash, statistics);
  return OkStatus();
}

// The output has the element type of scale.
Status InferRmsNormalization(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckStashType(c));
  Type y = c.input(0);
  y.dtype = c.dtype(1);
  if (y.rank_known) {
    MSRT_ASSIGN_OR_RETURN([[maybe_unused]] const int axis,
                          NormalizeAxis(c.op().Int("axis"), y.rank()));
    MSRT_RETURN_IF_ERROR(CheckScaleAndBias(c));
  }
  c.SetOutput(0, std::move(y));
  return OkStatus();
}

Status InferLpNormalization(InferContext& c) {
  if (c.input(0).rank_known) {
    MSRT_ASSIGN_OR_RETURN([[maybe_unused]] const int axis,
                          NormalizeAxis(c.op().Int("axis"), c.input(0).rank()));
  }
  return InferSameAsFirst(c);
}

// One flag for each dim of X: whether it is normalised over.
using DimFlags = std::array<bool, kMaxRank>;

// The default axes are those of an image batch; an empty list means all, as for every ONNX
// reduction.
Result<DimFlags> MeanVarianceFlags(const OpView& op, int rank) {
  constexpr int64_t kImageAxes[] = {0, 2, 3};
  const std::span<const int64_t> axes =
      op.Has("axes") ? op.Ints("axes") : std::span<const int64_t>(kImageAxes);
  DimFlags flags{};
  for (int64_t given : axes) {
    MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(given, rank, "axes"));
    if (flags[static_cast<size_t>(axis)]) return InvalidModel("axes names axis ", axis, " twice");
    flags[static_cast<size_t>(axis)] = true;
  }
  if (axes.empty()) flags.fill(true);
  return flags;
}

Status InferMeanVarianceNormalization(InferContext& c) {
  if (c.input(0).rank_known) {
    MSRT_ASSIGN_OR_RETURN([[maybe_unused]] const DimFlags flags,
                          MeanVarianceFlags(c.op(), c.input(0).rank()));
  }
  return InferSameAsFirst(c);
}

// ---- iteration spaces ---------------------------------------------------------------------------

// A dim of X that is normalised over stays whole. The outputs follow X; the statistics of
// LayerNormalization have dims of 1 wherever X is normalised.
template <typename IsNormalized>
void ResolveLikeX(const OpView& op, const IsNormalized& normalized, ResolvedSpace* space) {
  ResolveByInput(op, normalized, space);
  space->outputs[0] = TensorMap::Same(op.output(0).dims);
  for (size_t o = 1; o < op.output_count(); ++o) {
    if (op.has_output(o))
      space->outputs[o] = TensorMap::Broadcast(op.output(o).dims, op.input(0).rank());
  }
}

// A piece reads the part of each parameter that broadcasts to it.
void BroadcastParameters(const OpView& op, ResolvedSpace* space) {
  for (size_t i = 1; i < op.input_count(); ++i) {
    if (op.has_input(i))
      space->inputs[i] = TensorMap::Broadcast(op.input(i).dims, op.input(0).rank());
  }
}

// A piece reads the parameters of its channels. Without a dim of channels there is one.
void PerChannelParameters(const OpView& op, const DimMap& channels, ResolvedSpace* space) {
  if (op.input(0).rank() < 2) return;
  for (size_t i = 1; i < op.input_count(); ++i) space->inputs[i].dims[0] = channels;
}

Status ResolveBatch(const OpView& op, ResolvedSpace* space) {
  ResolveLikeX(
      op, [](int) { return false; }, space);
  if (op.input(0).rank() >= 2)
    PerChannelParameters(op, DimMap::Same(1, op.input(0).dims[1]), space);
  return OkStatus();
}

// Axes: the dims of X, of which the channels can be cut.
Status ResolveBatchNormTraining(const OpView& op, ResolvedSpace* space) {
  ResolveByInput(
      op, [](int d) { return d != 1; }, space);
  const DimMap channels = DimMap::Same(1, op.input(0).dims[1]);
  PerChannelParameters(op, channels, space);
  space->outputs[0] = TensorMap::Same(op.output(0).dims);
  for (size_t o = 1; o < op.output_count(); ++o) {
    if (op.has_output(o)) space->outputs[o].dims[0] = channels;
  }
  return OkStatus();
}

Status ResolveInstance(const OpView& op, ResolvedSpace* space) {
  ResolveLikeX(
      op, [](int d) { return d >= 2; }, space);
  PerChannelParameters(op, DimMap::Same(1, op.input(0).dims[1]), space);
  return OkStatus();
}

// For LayerNormalization and RMSNormalization: everything from `axis` on.
Status ResolveTrailing(const OpView& op, ResolvedSpace* space) {
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(op.Int("axis"), op.input(0).rank()));
  ResolveLikeX(
      op, [&](int d) { return d >= axis; }, space);
  BroadcastParameters(op, space);
  return OkStatus();
}

Status ResolveLp(const OpView& op, ResolvedSpace* space) {
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(op.Int("axis"), op.input(0).rank()));
  ResolveLikeX(
      op, [&](int d) { return d == axis; }, space);
  return OkStatus();
}

Status ResolveMeanVariance(const OpView& op, ResolvedSpace* space) {
  MSRT_ASSIGN_OR_RETURN(const DimFlags flags, MeanVarianceFlags(op, op.input(0).rank()));
  ResolveLikeX(
      op, [&](int d) { return flags[static_cast<size_t>(d)]; }, space);
  return OkStatus();
}

// Axes: batch, groups, the channels of a group, space. Batch and groups are parallel.
Status ResolveGroup(const OpView& op, ResolvedSpace* space) {
  const Dims& dims = op.input(0).dims;
  const int64_t groups = op.Int("num_groups"), size = dims[1] / groups;
  AddAxes(AxisKind::kParallel, Dims{dims[0], groups}, &space->axes);
  space->axes.Add(AxisKind::kWhole, size);
  TensorMap x = TensorMap::Same(dims, 1);
  x.dims[0].axis = 0;
  x.dims[1] = DimMap::Block(1, size, dims[1]);
  for (int i = 2; i < dims.rank(); ++i) space->axes.Add(AxisKind::kWhole, dims[i]);
  PerChannelParameters(op, x.dims[1], space);
  space->inputs[0] = x;
  space->outputs[0] = std::move(x);
  return OkStatus();
}

Status GroupLocalize(const OpView&, const Box& box, std::span<const Box>, std::span<const Box>,
                     AttrList* attrs) {
  attrs->Set("num_groups", std::max<int64_t>(box[1].size(), 1));
  return OkStatus();
}

constexpr SpaceDef kBatchSpace{.resolve = ResolveBatch};
constexpr SpaceDef kBatchNormTrainingSpace{.resolve = ResolveBatchNormTraining};
constexpr SpaceDef kInstanceSpace{.resolve = ResolveInstance};
constexpr SpaceDef kGroupSpace{.localize = GroupLocalize, .resolve = ResolveGroup};
constexpr SpaceDef kTrailingSpace{.resolve = ResolveTrailing};
constexpr SpaceDef kLpSpace{.resolve = ResolveLp};
constexpr SpaceDef kMeanVarianceSpace{.resolve = ResolveMeanVariance};

// ---- costs --------------------------------------------------------------------------------------

template <int kPerElement>
Cost CostPerElement(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  cost.flops = kPerElement * static_cast<double>(op.output(0).elements());
  return cost;
}
constexpr CostFn kAffineCost =
    CostPerElement<2>;  // the statistics fold into a factor and an addend
constexpr CostFn kMomentsCost = CostPerElement<8>;    // mean 1, variance 3, result 4
constexpr CostFn kSquareSumCost = CostPerElement<4>;  // square sum 2, result 2

// ---- entries ------------------------------------------------------------------------------------

constexpr AttrDef kEpsilon{
    .name = "epsilon", .kind = AttrKind::kFloat, .default_float = 1e-5, .min_float = 0};
constexpr AttrDef kAxis{
    .name = "axis", .default_int = -1, .min_int = -kMaxRank, .max_int = kMaxRank - 1};
// The type of the saved statistics, by default f32. It is also the minimum precision of the first
// stage.
constexpr AttrDef kStashType{.name = "stash_type", .kind = AttrKind::kDType};

constexpr AttrDef kBatchAttrs[] = {
    kEpsilon,
    {.name = "momentum", .kind = AttrKind::kFloat, .default_float = 0.9},
    {.name = "training_mode", .min_int = 0, .max_int = 0},
};
constexpr AttrDef kFusedBatchAttrs[] = {kEpsilon, kActivationAttr, kActivationAlphaAttr,
                                        kActivationBetaAttr};
constexpr AttrDef kInstanceAttrs[] = {kEpsilon};
constexpr AttrDef kGroupAttrs[] = {
    kEpsilon, {.name = "num_groups", .required = true, .min_int = 1}, kStashType};
constexpr AttrDef kTrailingAttrs[] = {kAxis, kEpsilon, kStashType};
constexpr AttrDef kLpAttrs[] = {kAxis, {.name = "p", .default_int = 2, .min_int = 1, .max_int = 2}};
constexpr AttrDef kMeanVarianceAttrs[] = {{.name = "axes",
                                           .kind = AttrKind::kInts,
                                           .min_int = -kMaxRank,
                                           .max_int = kMaxRank - 1,
                                           .max_count = kMaxRank}};

constexpr ParamDef kBatchInputs[] = {
    {.name = "X", .types = kFloatTypes},
    {.name = "scale", .types = kFloatTypes, .group = 1},
    {.name = "B", .types = kFloatTypes, .group = 1},
    {.name = "input_mean", .types = kFloatTypes, .group = 2},
    {.name = "input_var", .types = kFloatTypes, .group = 2},
};
constexpr ParamDef kBatchNormTrainingInputs[] = {
    {.name = "X", .types = kFloatTypes},
    {.name = "scale", .types = kFloatTypes, .group = 1},
    {.name = "B", .types = kFloatTypes, .group = 1},
};
constexpr ParamDef kScaleAndBiasInputs[] = {
    {.name = "X", .types = kFloatTypes, .group = 1},
    {.name = "scale", .types = kFloatTypes, .group = 1},
    {.name = "B", .types = kFloatTypes, .group = 1},
};
constexpr ParamDef kLayerInputs[] = {
    {.name = "X", .types = kFloatTypes, .group = 1},
    {.name = "Scale", .types = kFloatTypes, .group = 1},
    {.name = "B", .types = kFloatTypes, .kind = ParamDef::kOptional, .group = 1},
};
constexpr ParamDef kRmsInputs[] = {{.name = "X", .types = kFloatTypes},
                                   {.name = "scale", .types = kFloatTypes}};
constexpr ParamDef kPlainInputs[] = {{.name = "X", .types = kFloatTypes}};

constexpr OpDef kNormalizationOps[] = {
    {.name = "BatchNormalization",
     .attrs = kBatchAttrs,
     .inputs = kBatchInputs,
     .infer = InferBatchNormalization,
     .grad = GradBatchNormalization,
     .space = &kBatchSpace,
     .cost = kAffineCost},
    {.name = "FusedBatchNormalization",
     .domain = "msrt",
     .version = 1,
     .attrs = kFusedBatchAttrs,
     .inputs = kBatchInputs,
     .infer = InferBatchNormalization,
     .grad = GradBatchNormalization,
     .space = &kBatchSpace,
     .cost = kAffineCost},
    // Normalizes with the mean and the variance of each channel of X itself, which are outputs 1
    // and 2.
    {.name = "BatchNormTraining",
     .domain = "msrt",
     .version = 1,
     .attrs = kInstanceAttrs,
     .inputs = kBatchNormTrainingInputs,
     .max_outputs = 3,
     .infer = InferBatchNormTraining,
     .grad = GradBatchNormTraining,
     .space = &kBatchNormTrainingSpace,
     .expand = ExpandBatchNormTraining,
     .cost = kMomentsCost},
    {.name = "InstanceNormalization",
     .attrs = kInstanceAttrs,
     .inputs = kScaleAndBiasInputs,
     .infer = InferInstanceNormalization,
     .grad = GradInstanceNormalization,
     .space = &kInstanceSpace,
     .expand = ExpandInstanceNormalization,
     .cost = kMomentsCost},
    {.name = "GroupNormalization",
     .attrs = kGroupAttrs,
     .inputs = kScaleAndBiasInputs,
     .infer = InferGroupNormalization,
     .grad = GradGroupNormalization,
     .space = &kGroupSpace,
     .expand = ExpandGroupNormalization,
     .cost = kMomentsCost},
    {.name = "LayerNormalization",
     .attrs = kTrailingAttrs,
     .inputs = kLayerInputs,
     .max_outputs = 3,
     .infer = InferLayerNormalization,
     .grad = GradLayerNormalization,
     .space = &kTrailingSpace,
     .expand = ExpandLayerNormalization,
     .cost = kMomentsCost},
    {.name = "RMSNormalization",
     .attrs = kTrailingAttrs,
     .inputs = kRmsInputs,
     .infer = InferRmsNormalization,
     .grad = GradRmsNormalization,
     .space = &kTrailingSpace,
     .cost = kSquareSumCost},
    {.name = "LpNormalization",
     .attrs = kLpAttrs,
     .inputs = kPlainInputs,
     .infer = InferLpNormalization,
     .grad = GradLpNormalization,
     .space = &kLpSpace,
     .cost = kSquareSumCost},
    {.name = "MeanVarianceNormalization",
     .attrs = kMeanVarianceAttrs,
     .inputs = kPlainInputs,
     .infer = InferMeanVarianceNormalization,
     .grad = GradMeanVarianceNormalization,
     .space = &kMeanVarianceSpace,
     .expand = ExpandMeanVarianceNormalization,
     .cost = kMomentsCost},
};

}  // namespace

std::span<const OpDef> NormalizationOps() { return kNormalizationOps; }

}  // namespace msrt
