// Convolutions. X is [batch, channels, space...]; W is [outputs, inputs of a group, kernel...], for
// ConvTranspose [inputs, outputs of a group, kernel...]. Axes of the iteration space: batch, output
// channels, space..., input channels of a group.
#include "ops/convolution.h"

#include <algorithm>
#include <vector>

#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

constexpr size_t kX = 0, kW = 1, kB = 2, kZ = 3;

bool IsTransposed(const OpView& op) { return op.op() == "ConvTranspose"; }

// ---- inference ----------------------------------------------------------------------------------

// Returns the kernel's extents from W and kernel_shape, which must agree if both are known.
Result<Dims> KernelOf(const InferContext& c, int space_rank) {
  const auto given = c.op().Ints("kernel_shape");
  if (!given.empty() && given.size() != static_cast<size_t>(space_rank)) {
    return InvalidModel("kernel_shape has ", given.size(), " elements, must have ", space_rank,
                        " for an input of shape ", c.dims(kX));
  }
  Dims kernel = Dims::Filled(space_rank, kUnknownDim);
  for (int i = 0; i < space_rank; ++i) {
    if (c.input(kW).rank_known) kernel[i] = c.dims(kW)[2 + i];
    if (!given.empty()) {
      MSRT_ASSIGN_OR_RETURN(kernel[i], SameDim(given[static_cast<size_t>(i)], kernel[i],
                                               "kernel_shape and the shape of W disagree"));
    }
  }
  return kernel;
}

// Returns the number of output channels; unknown if that of W is.
Result<int64_t> OutputChannels(const InferContext& c, bool transposed) {
  const int64_t groups = c.op().Int("group");
  const int64_t inputs = c.dims(kX)[1];
  const int64_t w0 = c.input(kW).rank_known ? c.dims(kW)[0] : kUnknownDim;
  const int64_t w1 = c.input(kW).rank_known ? c.dims(kW)[1] : kUnknownDim;
  if (IsKnown(inputs) && inputs % groups != 0)
    return InvalidModel("input channels ", inputs, " do not divide into group = ", groups);
  const auto range = c.op().Ints("output_channels");
  if (!range.empty()) {
    const bool valid = range.size() == 3 && range[0] < range[2] && range[0] <= range[1] &&
                       (range[1] + range[2] - 1) / range[2] == groups;
    if (!valid)
      return InvalidModel("output_channels = ", range,
                          " is not [begin, end, per group] of group = ", groups);
  }
  if (transposed) {
    MSRT_RETURN_IF_ERROR(SameDim(inputs, w0, "input channels of X and W").status());
    if (!range.empty()) {
      MSRT_RETURN_IF_ERROR(SameDim(range[2], w1, "outputs of a group and dim 1 of W").status());
      return range[1] - range[0];
    }
    int64_t outputs = kUnknownDim;
    if (IsKnown(w1) && !CheckedMul(w1, groups, &outputs))
      return InvalidModel("W of shape ", c.dims(kW), " with group = ", groups, " is too large");
    return outputs;
  }
  if (IsKnown(inputs))
    MSRT_RETURN_IF_ERROR(
        SameDim(inputs / groups, w1, "input channels of a group in X and W").status());
  if (!range.empty()) return SameDim(range[1] - range[0], w0, "output_channels and dim 0 of W");
  if (IsKnown(w0) && w0 % groups != 0)
    return InvalidModel("output channels ", w0, " do not divide into group = ", groups);
  return w0;
}

Status CheckBias(const InferContext& c, int64_t* outputs) {
  if (!c.has_input(kB) || c.op().Int("partial") != 0) return OkStatus();
  MSRT_RETURN_IF_ERROR(CheckRank(c, kB, 1));
  if (!c.input(kB).rank_known) return OkStatus();
  MSRT_ASSIGN_OR_RETURN(*outputs,
                        SameDim(*outputs, c.dims(kB)[0], "output channels and the length of B"));
  return OkStatus();
}

Status CheckResidual(const InferContext& c, Dims* out) {
  if (!c.has_input(kZ) || !c.input(kZ).rank_known || c.op().Int("partial") != 0) return OkStatus();
  MSRT_RETURN_IF_ERROR(CheckRank(c, kZ, out->rank()));
  for (int i = 0; i < out->rank(); ++i) {
    MSRT_ASSIGN_OR_RETURN((*out)[i], SameDim((*out)[i], c.dims(kZ)[i],
                                             "the residual Z must have the shape of the output"));
  }
  return OkStatus();
}

}  // namespace

Status InferConvolution(InferContext& c) {
  const bool transposed = IsTransposed(c.op());
  if (!c.input(kX).rank_known) {
    c.SetOutput(0, Type::UnrankedTensor(c.dtype(kX)));
    return OkStatus();
  }
  const Dims& x = c.dims(kX);
  MSRT_RETURN_IF_ERROR(CheckSpatialRank(x));
  MSRT_RETURN_IF_ERROR(CheckRank(c, kW, x.rank()));
  MSRT_ASSIGN_OR_RETURN(const Dims kernel, KernelOf(c, x.rank() - 2));
  MSRT_ASSIGN_OR_RETURN(const Windows windows, transposed ? TransposedWindowsOf(c.op(), x, kernel)
                                                          : WindowsOf(c.op(), x, kernel));
  MSRT_ASSIGN_OR_RETURN(int64_t outputs, OutputChannels(c, transposed));
  MSRT_RETURN_IF_ERROR(CheckBias(c, &outputs));
  Dims out{x[0], outputs};
  for (int i = 0; i < windows.rank; ++i) out.push_back(windows.axis[static_cast<size_t>(i)].out);
  MSRT_RETURN_IF_ERROR(CheckResidual(c, &out));
  c.SetOutput(0, c.dtype(kX), out);
  return OkStatus();
}

namespace {

// ---- iteration space ----------------------------------------------------------------------------

struct ConvGeometry {
  bool transposed;
  ConvChannels channels;
  Windows windows;
};

Result<ConvGeometry> Resolve(const OpView& op) {
  const Dims &x = op.input(kX).dims, &w = op.input(kW).dims;
  ConvGeometry r{.transposed = IsTransposed(op), .channels = {}, .windows = {}};
  r.channels = ConvChannelsOf(op, x, w, r.transposed);
  const auto kernel = std::span<const int64_t>(w).subspan(2);
  MSRT_ASSIGN_OR_RETURN(
      r.windows, r.transposed ? TransposedWindowsOf(op, x, kernel) : WindowsOf(op, x, kernel));
  return r;
}

std::vector<Interval> SpaceOf(const Box& box, const Windows& windows) {
  std::vector<Interval> space;
  for (int i = 0; i < windows.rank; ++i) space.push_back(box[2 + i]);
  return space;
}

// The outputs of a group in the weights of a transposed convolution. Channels of several groups
// need them all.
class GroupOutputs : public IntervalMap {
 public:
  explicit GroupOutputs(const ConvChannels& channels) : channels_(channels) {}
  Interval Touched(Interval outputs) const override {
    const Interval groups = GroupsOf(channels_, outputs);
    if (groups.size() > 1) return {0, channels_.group_outputs};
    const int64_t from = channels_.first_output - groups.begin * channels_.group_outputs;
    return {outputs.begin + from, outputs.end + from};
  }

 private:
  ConvChannels channels_;
};

// Partial sums over input channels are possible if those are one block of X and nothing follows the
// sum. Only the first part of a sum adds bias and residual.
Status ResolveConv(const OpView& op, ResolvedSpace* space) {
  MSRT_ASSIGN_OR_RETURN(const ConvGeometry r, Resolve(op));
  const ConvChannels& ch = r.channels;
  const Dims &x = op.input(kX).dims, &w = op.input(kW).dims;
  const int summed = r.windows.rank + 2;
  AddAxes(AxisKind::kParallel, Dims{x[0], ch.outputs}, &space->axes);
  for (int i = 0; i < r.windows.rank; ++i)
    space->axes.Add(AxisKind::kWindow, r.windows.axis[static_cast<size_t>(i)].out);
  const bool summable = ch.groups == 1 && op.String("activation").empty();
  space->axes.Add(summable ? AxisKind::kReduce : AxisKind::kWhole, ch.group_inputs,
                  summable ? Monoid::kSum : Monoid::kNone);

  // The input channels of the groups of the piece's output channels.
  const auto grouped = [&](int64_t extent) {
    DimMap map = DimMap::Block(1, ch.group_inputs, extent, ch.group_outputs, ch.first_output);
    map.whole_if_empty = true;
    return map;
  };
  std::vector<DimMap>& x_dims = space->inputs[kX].dims;
  x_dims[0] = DimMap::Same(0, x[0]);
  x_dims[1] = ch.groups == 1 ? DimMap::Same(summed, x[1]) : grouped(x[1]);
  for (int i = 0; i < r.windows.rank; ++i) {
    const WindowAxis& a = r.windows.axis[static_cast<size_t>(i)];
    x_dims[static_cast<size_t>(i) + 2] = r.transposed ? TransposedMapOf(a, i + 2) : MapOf(a, i + 2);
  }
  std::vector<DimMap>& w_dims = space->inputs[kW].dims;
  if (r.transposed) {
    w_dims[0] = ch.groups == 1 ? DimMap::Same(summed, w[0]) : grouped(w[0]);
    w_dims[1] = DimMap::Function(1, w[1], std::make_shared<GroupOutputs>(ch));
    w_dims[1].whole_if_empty = true;
  } else {
    w_dims[0] = DimMap::Same(1, w[0]);
    w_dims[1] = DimMap::Same(summed, w[1]);
  }
  space->outputs[0] = TensorMap::Same(op.output(0).dims);
  if (op.has_input(kB)) space->inputs[kB] = TensorMap::Same(op.input(kB).dims, 1);
  if (op.has_input(kZ)) space->inputs[kZ] = TensorMap::Same(op.input(kZ).dims);
  for (size_t i = kB; i < op.input_count(); ++i) space->inputs[i].first_of = summed;
  return OkStatus();
}

Status ConvLocalize(const OpView& op, const Box& box, std::span<const Box>, std::span<const Box>,
                    AttrList* attrs) {
  MSRT_ASSIGN_OR_RETURN(const ConvGeometry r, Resolve(op));
  const ConvChannels& ch = r.channels;
  const std::vector<Interval> space = SpaceOf(box, r.windows);
  if (r.transposed) LocalizeTransposedWindows(r.windows, space, attrs);
  else LocalizeWindows(r.windows, space, attrs);

  LocalizeGroups(ch, box[1], attrs);
  if (box[box.rank() - 1].begin > 0) attrs->Set("partial", int64_t{1});
  return OkStatus();
}

}  // namespace

const SpaceDef kConvSpace{.localize = ConvLocalize, .resolve = ResolveConv};

// Each output element needs a multiply-add for every weight of its group and tap; in a transposed
// convolution each input element does.
Cost ConvCost(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  const Dims& w = op.input(kW).dims;
  const ConvChannels ch = ConvChannelsOf(op, op.input(kX).dims, w, IsTransposed(op));
  const double taps = static_cast<double>(w.product(2, w.rank()));
  if (IsTransposed(op))
    cost.flops = 2 * static_cast<double>(op.input(kX).elements()) *
                 static_cast<double>(ch.group_outputs) * taps;
  else
    cost.flops = 2 * static_cast<double>(op.output(0).elements()) *
                 static_cast<double>(ch.group_inputs) * taps;
  return cost;
}

namespace {

// ---- entries ------------------------------------------------------------------------------------

constexpr AttrDef kConvTransposeAttrs[] = {
    kAutoPadAttr,
    kDilationsAttr,
    kGroupAttr,
    kKernelShapeAttr,
    {.name = "output_padding",
     .kind = AttrKind::kInts,
     .min_int = 0,
     .max_int = kMaxWindow,
     .max_count = kMaxSpace},
    {.name = "output_shape",
     .kind = AttrKind::kInts,
     .min_int = 0,
     .max_int = int64_t{1} << 56,
     .max_count = kMaxSpace},
    kPadsAttr,
    kStridesAttr,
    kOutputChannelsAttr,
    kPartialAttr,
    kPieceOffsetsAttr,
    kPieceOutputsAttr,
};

constexpr ParamDef kConvInputs[] = {
    {.name = "X", .types = kFloatTypes, .group = 1},
    {.name = "W", .types = kFloatTypes, .group = 1},
    {.name = "B", .types = kFloatTypes, .kind = ParamDef::kOptional, .group = 1},
};
constexpr ParamDef kFusedConvInputs[] = {
    {.name = "X", .types = kFloatTypes, .group = 1},
    {.name = "W", .types = kFloatTypes, .group = 1},
    {.name = "B", .types = kFloatTypes, .kind = ParamDef::kOptional, .group = 1},
    {.name = "Z", .types = kFloatTypes, .kind = ParamDef::kOptional, .group = 1},
};

constexpr OpDef kConvOps[] = {
    {.name = "Conv",
     .attrs = kConvAttrs,
     .inputs = kConvInputs,
     .infer = InferConvolution,
     .grad = GradConv,
     .space = &kConvSpace,
     .cost = ConvCost},
    {.name = "ConvTranspose",
     .attrs = kConvTransposeAttrs,
     .inputs = kConvInputs,
     .infer = InferConvolution,
     .grad = GradConvTranspose,
     .space = &kConvSpace,
     .cost = ConvCost},
    {.name = "FusedConv",
     .domain = "msrt",
     .version = 1,
     .attrs = kFusedConvAttrs,
     .inputs = kFusedConvInputs,
     .infer = InferConvolution,
     .grad = GradFusedConv,
     .space = &kConvSpace,
     .cost = ConvCost},
};

}  // namespace

ConvChannels ConvChannelsOf(const OpView& op, const Dims& input, const Dims& weights,
                            bool transposed) {
  ConvChannels ch;
  ch.groups = op.Int("group");
  ch.group_inputs = input[1] / ch.groups;
  const auto range = op.Ints("output_channels");
  if (!range.empty()) {
    ch.group_outputs = range[2];
    ch.first_output = range[0];
    ch.outputs = range[1] - range[0];
  } else {
    ch.group_outputs = transposed ? weights[1] : weights[0] / ch.groups;
    ch.outputs = ch.group_outputs * ch.groups;
  }
  return ch;
}

Interval GroupsOf(const ConvChannels& channels, Interval outputs) {
  if (outputs.empty()) return {0, channels.groups};
  return {channels.group_of(outputs.begin), channels.group_of(outputs.end - 1) + 1};
}

void LocalizeGroups(const ConvChannels& ch, Interval outputs, AttrList* attrs) {
  const Interval groups = GroupsOf(ch, outputs);
  attrs->Set("group", groups.size());
  attrs->Remove("output_channels");
  const int64_t begin = outputs.begin + ch.first_output - groups.begin * ch.group_outputs;
  const int64_t end = begin + outputs.size();
  if (!outputs.empty() && groups.size() > 1 &&
      (begin != 0 || end != groups.size() * ch.group_outputs)) {
    attrs->Set("output_channels", std::vector<int64_t>{begin, end, ch.group_outputs});
  }
}

std::span<const OpDef> ConvOps() { return kConvOps; }

}  // namespace msrt
