// Gradients of convolutions. With respect to the data, the gradient of a convolution is a
// transposed one and the reverse; with respect to the weights, both are msrt.ConvWeightGrad.
#include <algorithm>
#include <vector>

#include "ops/convolution.h"
#include "ops/families.h"
#include "ops/grad_builder.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

// ---- rules --------------------------------------------------------------------------------------

// A copy of the attributes that a convolution and its gradients share.
AttrList SharedAttrs(const OpView& op) {
  AttrList attrs;
  for (std::string_view name : {"strides", "dilations", "group"}) {
    if (const AttrValue* value = op.attrs().Find(name)) attrs.Set(name, *value);
  }
  return attrs;
}

std::vector<int64_t> SpaceAxes(int space_rank) {
  std::vector<int64_t> axes;
  for (int i = 0; i < space_rank; ++i) axes.push_back(2 + i);
  return axes;
}

Result<std::vector<int64_t>> KnownKernel(const GradBuilder& g, ValueId weights) {
  const auto given = g.op().Ints("kernel_shape");
  if (!given.empty()) return std::vector<int64_t>(given.begin(), given.end());
  const Type& w = g.type(weights);
  if (!w.rank_known) return Unsupported("the rank of W is not known; declare it");
  std::vector<int64_t> kernel(w.dims.begin() + 2, w.dims.end());
  if (!std::all_of(kernel.begin(), kernel.end(), IsKnown))
    return Unsupported("the extents of the kernel are not known; set kernel_shape");
  return kernel;
}

Status RequireRank(const GradBuilder& g, ValueId x) {
  if (g.type(x).rank_known) return OkStatus();
  return Unsupported("the rank of the input is not known; declare it");
}

bool IsSamePadded(const OpView& op) { return op.String("auto_pad").starts_with("SAME"); }

// The gradient of X = `x` of a convolution with the attributes of the node: the transposed
// convolution of `grad` with `weights`.
Result<ValueId> TransposedConv(GradBuilder& g, ValueId x, ValueId grad, ValueId weights,
                               std::span<const int64_t> kernel) {
  const Dims dims = g.type(x).dims;
  MSRT_ASSIGN_OR_RETURN(const Windows windows, WindowsOf(g.op(), dims, kernel));
  const auto rank = static_cast<size_t>(windows.rank);
  std::vector<int64_t> pads(2 * rank), output_padding(rank);
  bool crop = false;
  for (size_t i = 0; i < rank; ++i) {
    const WindowAxis& a = windows.axis[i];
    if (IsKnown(a.in) && a.out == 0) return g.Zeros(x);
    pads[i] = a.pad_begin;
    int64_t pad_end = a.pad_end;
    if (IsKnown(a.in)) {
      // Negative: the last elements of X are in no window. There are fewer than a stride.
      pad_end = a.stride * (a.out - 1) + a.span() - a.pad_begin - a.in;
    } else if (IsSamePadded(g.op())) {
      return Unsupported("auto_pad = '", g.op().String("auto_pad"),
                         "' with an unknown size of dim ", 2 + i,
                         " of the input; declare it or use pads");
    } else if (a.stride > 1) {
      pad_end = 1 - a.stride;  // as many as can be; those beyond X are cut off
      crop = true;
    }
    pads[rank + i] = std::max<int64_t>(pad_end, 0);
    output_padding[i] = std::max<int64_t>(-pad_end, 0);
  }
  AttrList attrs = SharedAttrs(g.op());
  attrs.Set("kernel_shape", std::vector<int64_t>(kernel.begin(), kernel.end()));
  attrs.Set("pads", std::move(pads));
  attrs.Set("output_padding", std::move(output_padding));
  const ValueId full = g.Add("ConvTranspose", {grad, weights}, std::move(attrs));
  if (!crop) return full;
  return g.Add("Slice",
               {full, g.Ints(std::vector<int64_t>(rank, 0)),
                g.Add("Shape", {x}, {{"start", int64_t{2}}}), g.Ints(SpaceAxes(windows.rank))});
}

ValueId BiasGradient(GradBuilder& g) {
  std::vector<int64_t> axes = SpaceAxes(g.type(g.grad()).rank() - 2);
  axes.insert(axes.begin(), 0);
  return g.SumOver(g.grad(), std::move(axes), /*keep=*/false);
}

// Attributes of the convolution without `group`-dependent local ones, for a node that has its
// geometry.
AttrList ConvAttrsOf(const OpView& op, std::span<const int64_t> kernel) {
  AttrList attrs = SharedAttrs(op);
  for (std::string_view name : {"pads", "auto_pad"}) {
    if (const AttrValue* value = op.attrs().Find(name)) attrs.Set(name, *value);
  }
  attrs.Set("kernel_shape", std::vector<int64_t>(kernel.begin(), kernel.end()));
  return attrs;
}

// The convolution whose data gradient a transposed convolution is: its input and its attributes.
struct Reversed {
  ValueId input = kNoValue;  // the gradient, without elements that no window reaches
  AttrList attrs;
};

Result<Reversed> ReversedConv(GradBuilder& g, std::span<const int64_t> kernel) {
  MSRT_ASSIGN_OR_RETURN(const Windows windows,
                        TransposedWindowsOf(g.op(), g.type(g.input(0)).dims, kernel));
  const auto rank = static_cast<size_t>(windows.rank);
  const auto output_padding = g.op().Ints("output_padding");
  std::vector<int64_t> pads(2 * rank), ends(rank, std::numeric_limits<int64_t>::max());
  bool crop = false;
  for (size_t i = 0; i < rank; ++i) {
    const WindowAxis& a = windows.axis[i];
    int64_t pad_end = a.pad_end - (output_padding.empty() ? 0 : output_padding[i]);
    if (IsKnown(a.in) && IsKnown(a.out)) {
      pad_end = a.stride * (a.in - 1) + a.span() - a.pad_begin - a.out;
    } else if (g.op().Has("output_shape") || IsSamePadded(g.op())) {
      return Unsupported("output_shape or auto_pad with an unknown size of dim ", 2 + i,
                         " of the input; declare it or use pads");
    }
    pads[i] = a.pad_begin;
    pads[rank + i] = std::max<int64_t>(pad_end, 0);
    if (pad_end > -a.stride) continue;
    ends[i] = pad_end;  // counted from the end
    crop = true;
  }
  Reversed r{.input = g.grad(), .attrs = SharedAttrs(g.op())};
  if (crop) {
    r.input = g.Add("Slice", {g.grad()},
                    {{"starts", std::vector<int64_t>(rank, 0)},
                     {"ends", std::move(ends)},
                     {"axes", SpaceAxes(windows.rank)}});
  }
  r.attrs.Set("pads", std::move(pads));
  r.attrs.Set("kernel_shape", std::vector<int64_t>(kernel.begin(), kernel.end()));
  return r;
}

}  // namespace

Status GradConv(GradBuilder& g) {
  MSRT_RETURN_IF_ERROR(RequireRank(g, g.input(0)));
  MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> kernel, KnownKernel(g, g.input(1)));
  if (g.wants(0)) {
    MSRT_ASSIGN_OR_RETURN(const ValueId dx,
                          TransposedConv(g, g.input(0), g.grad(), g.input(1), kernel));
    g.Set(0, dx);
  }
  if (g.wants(1)) {
    g.Set(1, g.AddMsrt("ConvWeightGrad", {g.input(0), g.grad()}, ConvAttrsOf(g.op(), kernel)));
  }
  if (g.wants(2)) g.Set(2, BiasGradient(g));
  return OkStatus();
}

Status GradConvTranspose(GradBuilder& g) {
  MSRT_RETURN_IF_ERROR(RequireRank(g, g.input(0)));
  MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> kernel, KnownKernel(g, g.input(1)));
  if (g.wants(2)) g.Set(2, BiasGradient(g));
  const Type x = g.type(g.input(0));
  for (int i = 2; i < x.rank(); ++i) {
    if (x.dims[i] == 0) return OkStatus();  // nothing depends on X or W
  }
  MSRT_ASSIGN_OR_RETURN(Reversed conv, ReversedConv(g, kernel));
  if (g.wants(0)) g.Set(0, g.Add("Conv", {conv.input, g.input(1)}, conv.attrs));
  if (g.wants(1)) g.Set(1, g.AddMsrt("ConvWeightGrad", {conv.input, g.input(0)}, conv.attrs));
  return OkStatus();
}

Status GradFusedConv(GradBuilder& g) {
  AttrList attrs = SharedAttrs(g.op());
  for (std::string_view name : {"pads", "auto_pad", "kernel_shape"}) {
    if (const AttrValue* value = g.op().attrs().Find(name)) attrs.Set(name, *value);
  }
  ValueId y = g.Add("Conv", {g.input(0), g.input(1), g.input(2)}, std::move(attrs));
  if (g.has_input(3)) y = g.Plus(y, g.input(3));
  g.SetByComposition({AddActivation(g, y)});
  return OkStatus();
}

// ---- msrt.ConvWeightGrad ------------------------------------------------------------------------

namespace {

// X and the gradient of Y of a convolution give the gradient of its W: for each weight the sum,
// over batch and space, of the products of what it multiplies with the gradient of what it adds to.
constexpr size_t kInput = 0, kGrad = 1;

// It is linear in both inputs.
Status GradConvWeightGrad(GradBuilder& g) {
  MSRT_RETURN_IF_ERROR(RequireRank(g, g.input(kInput)));
  const auto kernel = g.op().Ints("kernel_shape");
  if (g.wants(kInput)) {
    MSRT_ASSIGN_OR_RETURN(const ValueId dx,
                          TransposedConv(g, g.input(kInput), g.input(kGrad), g.grad(), kernel));
    g.Set(kInput, dx);
  }
  if (g.wants(kGrad))
    g.Set(kGrad, g.Add("Conv", {g.input(kInput), g.grad()}, ConvAttrsOf(g.op(), kernel)));
  return OkStatus();
}

Status InferConvWeightGrad(InferContext& c) {
  const auto kernel = c.op().Ints("kernel_shape");
  Dims out = Dims::Filled(2 + static_cast<int>(kernel.size()), kUnknownDim);
  std::copy(kernel.begin(), kernel.end(), out.begin() + 2);
  for (size_t i : {kInput, kGrad}) MSRT_RETURN_IF_ERROR(CheckRank(c, i, out.rank()));
  const int64_t groups = c.op().Int("group");
  const auto range = c.op().Ints("output_channels");
  if (!range.empty()) {
    const bool valid = range.size() == 3 && range[0] < range[2] && range[0] <= range[1] &&
                       (range[1] + range[2] - 1) / range[2] == groups;
    if (!valid)
      return InvalidModel("output_channels = ", range,
                          " is not [begin, end, per group] of group = ", groups);
    out[0] = range[1] - range[0];
  }
  if (c.input(kGrad).rank_known) {
    MSRT_ASSIGN_OR_RETURN(out[0], SameDim(out[0], c.dims(kGrad)[1], "channels of the gradient"));
    if (range.empty() && IsKnown(out[0]) && out[0] % groups != 0)
      return InvalidModel("output channels ", out[0], " do not divide into group = ", groups);
  }
  if (c.input(kInput).rank_known) {
    const Dims& x = c.dims(kInput);
    if (IsKnown(x[1]) && x[1] % groups != 0)
      return InvalidModel("input channels ", x[1], " do not divide into group = ", groups);
    if (IsKnown(x[1])) out[1] = x[1] / groups;
    MSRT_ASSIGN_OR_RETURN(const Windows windows, WindowsOf(c.op(), x, kernel));
    for (int i = 0; c.input(kGrad).rank_known && i < out.rank(); ++i) {
      if (i == 1) continue;
      const int64_t dim = i == 0 ? x[0] : windows.axis[static_cast<size_t>(i) - 2].out;
      MSRT_RETURN_IF_ERROR(
          SameDim(dim, c.dims(kGrad)[i],
                  StrCat("dim ", i, " of the convolution's output and of its gradient"))
              .status());
    }
  }
  c.SetOutput(0, c.dtype(kInput), out);
  return OkStatus();
}

// The dims of the weights are those of the output.
ConvChannels WeightGradChannels(const OpView& op) {
  return ConvChannelsOf(op, op.input(kInput).dims, op.output(0).dims, /*transposed=*/false);
}

// Axes: output channels, input channels of a group, batch, space. Input channels can be cut where
// those of a piece are one block of X.
Status ResolveConvWeightGrad(const OpView& op, ResolvedSpace* space) {
  const Dims &x = op.input(kInput).dims, &grad = op.input(kGrad).dims, &w = op.output(0).dims;
  MSRT_ASSIGN_OR_RETURN(const Windows windows, WindowsOf(op, x, op.Ints("kernel_shape")));
  const ConvChannels ch = WeightGradChannels(op);
  space->axes.Add(AxisKind::kParallel, w[0]);
  space->axes.Add(ch.groups == 1 ? AxisKind::kParallel : AxisKind::kWhole, w[1]);
  space->axes.Add(AxisKind::kReduce, x[0], Monoid::kSum);
  std::vector<DimMap>&x_dims = space->inputs[kInput].dims, &grad_dims = space->inputs[kGrad].dims;
  x_dims[0] = DimMap::Same(2, x[0]);
  grad_dims[0] = DimMap::Same(2, grad[0]);
  grad_dims[1] = DimMap::Same(0, grad[1]);
  if (ch.groups == 1) {
    x_dims[1] = DimMap::Same(1, x[1]);
  } else {
    x_dims[1] = DimMap::Block(0, ch.group_inputs, x[1], ch.group_outputs, ch.first_output);
    x_dims[1].whole_if_empty = true;
  }
  for (int i = 0; i < windows.rank; ++i) {
    const WindowAxis& a = windows.axis[static_cast<size_t>(i)];
    space->axes.Add(AxisKind::kReduce, a.out, Monoid::kSum);
    x_dims[static_cast<size_t>(i) + 2] = MapOf(a, i + 3);
    grad_dims[static_cast<size_t>(i) + 2] = DimMap::Same(i + 3, a.out);
  }
  std::vector<DimMap>& w_dims = space->outputs[0].dims;
  w_dims[0] = DimMap::Same(0, w[0]);
  w_dims[1] = DimMap::Same(1, w[1]);
  return OkStatus();
}

Status LocalizeConvWeightGrad(const OpView& op, const Box& box, std::span<const Box>,
                              std::span<const Box>, AttrList* attrs) {
  MSRT_ASSIGN_OR_RETURN(const Windows windows,
                        WindowsOf(op, op.input(kInput).dims, op.Ints("kernel_shape")));
  std::vector<Interval> space;
  for (int i = 0; i < windows.rank; ++i) space.push_back(box[3 + i]);
  LocalizeWindows(windows, space, attrs);
  LocalizeGroups(WeightGradChannels(op), box[0], attrs);
  return OkStatus();
}

constexpr SpaceDef kConvWeightGradSpace{.localize = LocalizeConvWeightGrad,
                                        .resolve = ResolveConvWeightGrad};

// A multiply-add for each element of the gradient and each weight that it depends on.
Cost ConvWeightGradCost(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  const Dims& w = op.output(0).dims;
  cost.flops = 2 * static_cast<double>(op.input(kGrad).elements()) *
               static_cast<double>(w.product(1, w.rank()));
  return cost;
}

constexpr AttrDef kConvWeightGradAttrs[] = {kAutoPadAttr,        kDilationsAttr, kGroupAttr,
                                            kRequiredKernelAttr, kPadsAttr,      kStridesAttr,
                                            kOutputChannelsAttr};
constexpr ParamDef kConvWeightGradInputs[] = {{.name = "X", .types = kFloatTypes, .group = 1},
                                              {.name = "dY", .types = kFloatTypes, .group = 1}};

constexpr OpDef kConvGradOps[] = {
    {.name = "ConvWeightGrad",
     .domain = "msrt",
     .version = 1,
     .attrs = kConvWeightGradAttrs,
     .inputs = kConvWeightGradInputs,
     .infer = InferConvWeightGrad,
     .grad = GradConvWeightGrad,
     .space = &kConvWeightGradSpace,
     .cost = ConvWeightGradCost},
};

}  // namespace

std::span<const OpDef> ConvGradOps() { return kConvGradOps; }

}  // namespace msrt
