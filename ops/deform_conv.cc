// DeformConv: a convolution whose taps are moved by individual offsets, also between pixels, and
// weighted by a mask. X is [N, C, space...], W [outputs, C / group, kernel...], offset [N,
// offset_group * taps * rank of space, out...].
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"
#include "ops/window.h"

namespace msrt {
namespace {

constexpr size_t kX = 0, kW = 1, kOffset = 2, kBias = 3, kMask = 4;

Result<Dims> KernelOf(const InferContext& c, int space) {
  const auto given = c.op().Ints("kernel_shape");
  if (!given.empty() && std::ssize(given) != space)
    return InvalidModel("kernel_shape has ", given.size(), " elements, must have ", space);
  Dims kernel = Dims::Filled(space, kUnknownDim);
  for (int i = 0; i < space; ++i) {
    if (c.input(kW).rank_known) kernel[i] = c.dims(kW)[2 + i];
    if (given.empty()) continue;
    MSRT_ASSIGN_OR_RETURN(kernel[i], SameDim(given[static_cast<size_t>(i)], kernel[i],
                                             "kernel_shape and the shape of W disagree"));
  }
  return kernel;
}

// Offsets and masks have `per_tap` channels for each tap of each offset group, at every output
// position.
Status CheckPerTap(const InferContext& c, size_t input, const Dims& kernel, int64_t per_tap,
                   Dims* out) {
  if (!c.has_input(input)) return OkStatus();
  MSRT_RETURN_IF_ERROR(CheckRank(c, input, out->rank()));
  if (!c.input(input).rank_known) return OkStatus();
  const Dims& dims = c.dims(input);
  int64_t channels = c.op().Int("offset_group") * per_tap;
  for (int64_t k : kernel) {
    if (!IsKnown(k) || !IsKnown(channels)) channels = kUnknownDim;
    else if (!CheckedMul(channels, k, &channels))
      return InvalidModel("the kernel ", kernel, " has too many taps");
  }
  MSRT_RETURN_IF_ERROR(
      SameDim(dims[1], channels, "the channels of offsets or mask and those of all taps").status());
  MSRT_ASSIGN_OR_RETURN((*out)[0],
                        SameDim((*out)[0], dims[0], "the batches of input, offsets and mask"));
  for (int i = 2; i < dims.rank(); ++i) {
    MSRT_ASSIGN_OR_RETURN((*out)[i],
                          SameDim((*out)[i], dims[i], "the positions of output, offsets and mask"));
  }
  return OkStatus();
}

Status CheckGroups(const InferContext& c, const Dims& x) {
  const int64_t group = c.op().Int("group"), offset_group = c.op().Int("offset_group");
  if (IsKnown(x[1]) && (x[1] % group != 0 || x[1] % offset_group != 0)) {
    return InvalidModel("input channels ", x[1], " do not divide into group = ", group,
                        " and offset_group = ", offset_group);
  }
  if (!c.input(kW).rank_known) return OkStatus();
  const Dims& w = c.dims(kW);
  if (IsKnown(x[1]))
    MSRT_RETURN_IF_ERROR(
        SameDim(x[1] / group, w[1], "input channels of a group in X and W").status());
  if (IsKnown(w[0]) && w[0] % group != 0)
    return InvalidModel("output channels ", w[0], " do not divide into group = ", group);
  return OkStatus();
}

Status InferDeformConv(InferContext& c) {
  if (!c.input(kX).rank_known) {
    c.SetOutput(0, Type::UnrankedTensor(c.dtype(kX)));
    return OkStatus();
  }
  const Dims& x = c.dims(kX);
  MSRT_RETURN_IF_ERROR(CheckSpatialRank(x));
  MSRT_RETURN_IF_ERROR(CheckRank(c, kW, x.rank()));
  MSRT_RETURN_IF_ERROR(CheckGroups(c, x));
  MSRT_ASSIGN_OR_RETURN(const Dims kernel, KernelOf(c, x.rank() - 2));
  MSRT_ASSIGN_OR_RETURN(const Windows windows, WindowsOf(c.op(), x, kernel));
  Dims out{x[0], c.input(kW).rank_known ? c.dims(kW)[0] : kUnknownDim};
  for (int i = 0; i < windows.rank; ++i) out.push_back(windows.axis[static_cast<size_t>(i)].out);
  MSRT_RETURN_IF_ERROR(CheckPerTap(c, kOffset, kernel, windows.rank, &out));
  MSRT_RETURN_IF_ERROR(CheckPerTap(c, kMask, kernel, 1, &out));
  if (c.has_input(kBias)) {
    MSRT_RETURN_IF_ERROR(CheckRank(c, kBias, 1));
    if (c.input(kBias).rank_known) {
      MSRT_ASSIGN_OR_RETURN(
          out[1], SameDim(out[1], c.dims(kBias)[0], "output channels and the length of B"));
    }
  }
  c.SetOutput(0, c.dtype(kX), out);
  return OkStatus();
}

// A multiply-add for each tap of each input channel, and the interpolation of each tap from its
// corners, once for all outputs.
Cost CostDeformConv(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  const Dims& w = op.input(kW).dims;
  cost.flops = 2 * static_cast<double>(op.output(0).elements()) *
               static_cast<double>(w.product(1, w.rank()));
  return cost;
}

// Axes: batch, and output channels if all of them read the same inputs. Offsets may point anywhere,
// so the space stays whole.
Status DeformConvAxes(const OpView& op, IterationSpace* space) {
  space->Add(AxisKind::kParallel, op.output(0).dims[0]);
  space->Add(op.Int("group") == 1 ? AxisKind::kParallel : AxisKind::kWhole, op.output(0).dims[1]);
  return OkStatus();
}

Status DeformConvOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!op.has_input(i)) continue;
    inputs[i] = Box::Whole(op.input(i).dims);
    inputs[i][0] = i == kW || i == kBias ? box[1] : box[0];
  }
  return OkStatus();
}

constexpr SpaceDef kDeformConvSpace{
    .axes = DeformConvAxes, .operands = DeformConvOperands, .results = OutputBeginsWithBox};
constexpr AttrDef kDeformConvAttrs[] = {
    kKernelShapeAttr,
    kStridesAttr,
    kDilationsAttr,
    kPadsAttr,
    {.name = "group", .default_int = 1, .min_int = 1, .max_int = kMaxWindow},
    {.name = "offset_group", .default_int = 1, .min_int = 1, .max_int = kMaxWindow},
};
constexpr ParamDef kDeformConvInputs[] = {
    {"X", kFloatTypes, ParamDef::kRequired, 1},      {"W", kFloatTypes, ParamDef::kRequired, 1},
    {"offset", kFloatTypes, ParamDef::kRequired, 1}, {"B", kFloatTypes, ParamDef::kOptional, 1},
    {"mask", kFloatTypes, ParamDef::kOptional, 1},
};
constexpr OpDef kDeformConvOps[] = {
    {.name = "DeformConv",
     .attrs = kDeformConvAttrs,
     .inputs = kDeformConvInputs,
     .infer = InferDeformConv,
     .grad = GradDeformConv,
     .space = &kDeformConvSpace,
     .cost = CostDeformConv},
};

}  // namespace

std::span<const OpDef> DeformConvOps() { return kDeformConvOps; }

}  // namespace msrt
