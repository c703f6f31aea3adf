// Normalizations. An axis of X that an op normalises over stays whole, all others are parallel;
// BatchNormalization, whose statistics are inputs, may be cut anywhere. GroupNormalization has an
// axis of groups in place of channels.
#include "ops/activation.h"
#include "ops/families.h"
#include "ops/infer.h"

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

template <typename IsNormalized>
void AddDims(const Dims& dims, const IsNormalized& normalized, IterationSpace* space) {
  for (int i = 0; i < dims.rank(); ++i)
    space->Add(normalized(i) ? AxisKind::kWhole : AxisKind::kParallel, dims[i]);
}

Status BatchAxes(const OpView& op, IterationSpace* space) {
  AddDims(
      op.input(0).dims, [](int) { return false; }, space);
  return OkStatus();
}

Status InstanceAxes(const OpView& op, IterationSpace* space) {
  AddDims(
      op.input(0).dims, [](int i) { return i >= 2; }, space);
  return OkStatus();
}

// For LayerNormalization and RMSNormalization: everything from `axis` on.
Status TrailingAxes(const OpView& op, IterationSpace* space) {
  const Dims& dims = op.input(0).dims;
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(op.Int("axis"), dims.rank()));
  AddDims(
      dims, [&](int i) { return i >= axis; }, space);
  return OkStatus();
}

Status LpAxes(const OpView& op, IterationSpace* space) {
  const Dims& dims = op.input(0).dims;
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(op.Int("axis"), dims.rank()));
  AddDims(
      dims, [&](int i) { return i == axis; }, space);
  return OkStatus();
}

Status MeanVarianceAxes(const OpView& op, IterationSpace* space) {
  const Dims& dims = op.input(0).dims;
  MSRT_ASSIGN_OR_RETURN(const DimFlags flags, MeanVarianceFlags(op, dims.rank()));
  AddDims(
      dims, [&](int i) { return flags[static_cast<size_t>(i)]; }, space);
  return OkStatus();
}

Box Line(Interval interval) {
  Box box;
  box.push_back(interval);
  return box;
}

// A piece reads its part of X and the parameters of its channels.
Status PerChannelOperands(const OpView&, const Box& box, std::span<Box> inputs) {
  inputs[0] = box;
  for (size_t i = 1; i < inputs.size(); ++i)
    inputs[i] = Line(box.rank() >= 2 ? box[1] : Interval{0, 1});
  return OkStatus();
}

// A piece reads its part of X and the part of each parameter that broadcasts to it.
Status BroadcastOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (op.has_input(i)) inputs[i] = BroadcastNeeds(box, op.input(i).dims);
  }
  inputs[0] = box;
  return OkStatus();
}

// The statistics of LayerNormalization have dims of 1 wherever X is normalised.
Status SameResults(const OpView& op, const Box& box, std::span<Box> outputs) {
  outputs[0] = box;
  for (size_t i = 1; i < outputs.size(); ++i) {
    if (op.has_output(i)) outputs[i] = BroadcastNeeds(box, op.output(i).dims);
  }
  return OkStatus();
}

// Batch and groups are parallel; the channels of a group and the spatial axes stay whole.
Status GroupAxes(const OpView& op, IterationSpace* space) {
  const Dims& dims = op.input(0).dims;
  const int64_t groups = op.Int("num_groups");
  space->Add(AxisKind::kParallel, dims[0]);
  space->Add(AxisKind::kParallel, groups);
  space->Add(AxisKind::kWhole, dims[1] / groups);
  for (int i = 2; i < dims.rank(); ++i) space->Add(AxisKind::kWhole, dims[i]);
  return OkStatus();
}

Interval ChannelsOf(const OpView& op, Interval groups) {
  const int64_t channels = op.input(0).dims[1] / op.Int("num_groups");
  return {groups.begin * channels, groups.end * channels};
}

Box GroupBox(const OpView& op, const Box& box) {
  Box x;
  x.push_back(box[0]);
  x.push_back(ChannelsOf(op, box[1]));
  for (int i = 3; i < box.rank(); ++i) x.push_back(box[i]);
  return x;
}

Status GroupOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  return PerChannelOperands(op, GroupBox(op, box), inputs);
}

Status GroupResults(const OpView& op, const Box& box, std::span<Box> outputs) {
  outputs[0] = GroupBox(op, box);
  return OkStatus();
}

Status GroupLocalize(const OpView&, const Box& box, std::span<const Box>, std::span<const Box>,
                     AttrList* attrs) {
  attrs->Set("num_groups", std::max<int64_t>(box[1].size(), 1));
  return OkStatus();
}

constexpr SpaceDef kBatchSpace{
    .axes = BatchAxes, .operands = PerChannelOperands, .results = SameResults};
constexpr SpaceDef kInstanceSpace{
    .axes = InstanceAxes, .operands = PerChannelOperands, .results = SameResults};
constexpr SpaceDef kGroupSpace{.axes = GroupAxes,
                               .operands = GroupOperands,
                               .results = GroupResults,
                               .localize = GroupLocalize};
constexpr SpaceDef kTrailingSpace{
    .axes = TrailingAxes, .operands = BroadcastOperands, .results = SameResults};
constexpr SpaceDef kLpSpace{.axes = LpAxes, .operands = BroadcastOperands, .results = SameResults};
constexpr SpaceDef kMeanVarianceSpace{
    .axes = MeanVarianceAxes, .operands = BroadcastOperands, .results = SameResults};

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
     .grad = GradPending,
     .space = &kBatchSpace,
     .cost = kAffineCost},
    {.name = "FusedBatchNormalization",
     .domain = "msrt",
     .version = 1,
     .attrs = kFusedBatchAttrs,
     .inputs = kBatchInputs,
     .infer = InferBatchNormalization,
     .grad = GradPending,
     .space = &kBatchSpace,
     .cost = kAffineCost},
    {.name = "InstanceNormalization",
     .attrs = kInstanceAttrs,
     .inputs = kScaleAndBiasInputs,
     .infer = InferInstanceNormalization,
     .grad = GradPending,
     .space = &kInstanceSpace,
     .cost = kMomentsCost},
    {.name = "GroupNormalization",
     .attrs = kGroupAttrs,
     .inputs = kScaleAndBiasInputs,
     .infer = InferGroupNormalization,
     .grad = GradPending,
     .space = &kGroupSpace,
     .cost = kMomentsCost},
    {.name = "LayerNormalization",
     .attrs = kTrailingAttrs,
     .inputs = kLayerInputs,
     .max_outputs = 3,
     .infer = InferLayerNormalization,
     .grad = GradPending,
     .space = &kTrailingSpace,
     .cost = kMomentsCost},
    {.name = "RMSNormalization",
     .attrs = kTrailingAttrs,
     .inputs = kRmsInputs,
     .infer = InferRmsNormalization,
     .grad = GradPending,
     .space = &kTrailingSpace,
     .cost = kSquareSumCost},
    {.name = "LpNormalization",
     .attrs = kLpAttrs,
     .inputs = kPlainInputs,
     .infer = InferLpNormalization,
     .grad = GradPending,
     .space = &kLpSpace,
     .cost = kSquareSumCost},
    {.name = "MeanVarianceNormalization",
     .attrs = kMeanVarianceAttrs,
     .inputs = kPlainInputs,
     .infer = InferMeanVarianceNormalization,
     .grad = GradPending,
     .space = &kMeanVarianceSpace,
     .cost = kMomentsCost},
};

}  // namespace

std::span<const OpDef> NormalizationOps() { return kNormalizationOps; }

}  // namespace msrt
