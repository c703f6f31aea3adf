// The parts of a normalisation, so that it can be cut along the axes that it normalises over:
// msrt.Moments and msrt.ChannelSums (reductions, whose partial results combine) and msrt.Normalize
// (element by element).
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

// ---- Moments: mean and variance of X over `axes`, which stay as dims of 1 -----------------------

Status InferMoments(InferContext& c) {
  const Type& x = c.input(0);
  const DType dtype = c.op().Has("dtype") ? c.op().Dtype("dtype") : DType::kF32;
  if (!IsFloat(dtype)) return InvalidModel("dtype = ", dtype, ", must be a float type");
  Type out = x;
  out.dtype = dtype;
  if (x.rank_known) {
    MSRT_ASSIGN_OR_RETURN(const std::vector<int> axes,
                          NormalizeAxes(c.op().Ints("axes"), x.rank()));
    for (int a : axes) out.dims[a] = 1;
  }
  c.SetOutput(0, out);
  c.SetOutput(1, out);
  return OkStatus();
}

Status ResolveMoments(const OpView& op, ResolvedSpace* space) {
  const Dims& x = op.input(0).dims;
  MSRT_ASSIGN_OR_RETURN(const std::vector<int> axes, NormalizeAxes(op.Ints("axes"), x.rank()));
  std::vector<bool> reduced(x.size());
  for (int a : axes) reduced[static_cast<size_t>(a)] = true;
  TensorMap out = TensorMap::Same(x);
  for (int d = 0; d < x.rank(); ++d) {
    if (!reduced[static_cast<size_t>(d)]) {
      space->axes.Add(AxisKind::kParallel, x[d]);
      continue;
    }
    space->axes.Add(AxisKind::kReduce, x[d], Monoid::kMoments);
    out.dims[static_cast<size_t>(d)] = DimMap::Whole(1);
  }
  space->inputs[0] = TensorMap::Same(x);
  space->outputs[0] = out;
  space->outputs[1] = std::move(out);
  return OkStatus();
}

// ---- Normalize: (X - mean) / sqrt(variance + epsilon) * scale + bias ----------------------------

Status InferNormalize(InferContext& c) {
  const Type& x = c.input(0);
  for (size_t i = 1; x.rank_known && i < c.op().input_count(); ++i) {
    if (c.has_input(i) && c.input(i).rank_known)
      MSRT_RETURN_IF_ERROR(CheckBroadcastsTo(c.dims(i), x.dims, StrCat("input ", i)));
  }
  return InferSameAsFirst(c);
}

Status ResolveNormalize(const OpView& op, ResolvedSpace* space) {
  MSRT_RETURN_IF_ERROR(ResolveByOutput(op, space));
  for (size_t i = 0; i < op.input_count(); ++i) {
    if (op.has_input(i))
      space->inputs[i] = TensorMap::Broadcast(op.input(i).dims, op.output(0).rank());
  }
  return OkStatus();
}

// ---- ChannelSums: two sums of each channel of X, in double, as rows of Y [2, channels] ----------
//
// Without the other inputs, of X and of its squares: the statistics of a batch. With dY and mean,
// of dY and of dY * (X - mean): what its gradient needs of them. Sums of parts add up.

Status InferChannelSums(InferContext& c) {
  const Type& x = c.input(0);
  if (c.has_input(1) != c.has_input(2))
    return InvalidModel("it has one of dY and mean; it needs both, or neither");
  if (x.rank_known && x.rank() < 2)
    return InvalidModel("X has shape ", x.dims, ", must have rank 2 or more");
  int64_t channels = x.rank_known ? x.dims[1] : kUnknownDim;
  if (c.has_input(1)) {
    MSRT_RETURN_IF_ERROR(CheckRank(c, 2, 1));
    if (c.input(2).rank_known) {
      MSRT_ASSIGN_OR_RETURN(
          channels, SameDim(channels, c.dims(2)[0], "channels of X against elements of mean"));
    }
    if (x.rank_known && c.input(1).rank_known) {
      MSRT_RETURN_IF_ERROR(CheckRank(c, 1, x.rank()));
      for (int d = 0; d < x.rank(); ++d) {
        MSRT_RETURN_IF_ERROR(
            SameDim(x.dims[d], c.dims(1)[d], StrCat("dim ", d, " of X and of dY")).status());
      }
    }
  }
  c.SetOutput(0, DType::kF64, Dims{2, channels});
  return OkStatus();
}

Status ResolveChannelSums(const OpView& op, ResolvedSpace* space) {
  const Dims& x = op.input(0).dims;
  for (int d = 0; d < x.rank(); ++d) {
    if (d == 1) space->axes.Add(AxisKind::kParallel, x[d]);
    else space->axes.Add(AxisKind::kReduce, x[d], Monoid::kSum);
  }
  space->inputs[0] = TensorMap::Same(x);
  if (op.has_input(1)) {
    space->inputs[1] = TensorMap::Same(x);
    space->inputs[2].dims[0] = DimMap::Same(1, x[1]);
  }
  space->outputs[0].dims[1] = DimMap::Same(1, x[1]);
  return OkStatus();
}

template <int kPerElement>
Cost CostPerElementOfX(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  cost.flops = kPerElement * static_cast<double>(op.input(0).elements());
  return cost;
}

// ---- entries ------------------------------------------------------------------------------------

constexpr SpaceDef kMomentsSpace{.resolve = ResolveMoments};
constexpr SpaceDef kChannelSumsSpace{.resolve = ResolveChannelSums};
constexpr SpaceDef kNormalizeSpace{.resolve = ResolveNormalize};

constexpr AttrDef kMomentsAttrs[] = {
    {.name = "axes",
     .kind = AttrKind::kInts,
     .required = true,
     .min_int = -kMaxRank,
     .max_int = kMaxRank - 1,
     .max_count = kMaxRank},
    {.name = "dtype", .kind = AttrKind::kDType},  // of the outputs, by default f32
};
constexpr AttrDef kNormalizeAttrs[] = {
    {.name = "epsilon", .kind = AttrKind::kFloat, .default_float = 1e-5, .min_float = 0}};

constexpr ParamDef kMomentsInputs[] = {{"X", kFloatTypes}};
constexpr ParamDef kChannelSumsInputs[] = {{"X", kFloatTypes, ParamDef::kRequired, 1},
                                           {"dY", kFloatTypes, ParamDef::kOptional, 1},
                                           {"mean", kFloatTypes, ParamDef::kOptional, 2}};
constexpr ParamDef kNormalizeInputs[] = {{"X", kFloatTypes, ParamDef::kRequired, 1},
                                         {"mean", kFloatTypes, ParamDef::kRequired, 2},
                                         {"variance", kFloatTypes, ParamDef::kRequired, 2},
                                         {"scale", kFloatTypes, ParamDef::kOptional, 1},
                                         {"bias", kFloatTypes, ParamDef::kOptional, 1}};

constexpr OpDef kMomentsOps[] = {
    {.name = "Moments",
     .domain = "msrt",
     .version = 1,
     .attrs = kMomentsAttrs,
     .inputs = kMomentsInputs,
     .min_outputs = 2,
     .max_outputs = 2,
     .infer = InferMoments,
     .grad = GradMoments,
     .space = &kMomentsSpace,
     .cost = CostPerElementOfX<4>},
    {.name = "ChannelSums",
     .domain = "msrt",
     .version = 1,
     .inputs = kChannelSumsInputs,
     .infer = InferChannelSums,
     .grad = GradPending,
     .space = &kChannelSumsSpace,
     .cost = CostPerElementOfX<4>},
    {.name = "Normalize",
     .domain = "msrt",
     .version = 1,
     .attrs = kNormalizeAttrs,
     .inputs = kNormalizeInputs,
     .infer = InferNormalize,
     .grad = GradNormalize,
     .space = &kNormalizeSpace,
     .cost = CostPerElementOfX<4>},
};

}  // namespace

std::span<const OpDef> MomentsOps() { return kMomentsOps; }

}  // namespace msrt
