// Gradients of pools. msrt.MaxPoolGrad adds each element of the gradient to the greatest element of
// its window, msrt.AveragePoolGrad spreads it over its window. Axes of their iteration spaces:
// batch, channels, the space of X.
#include "ops/pool_grad.h"

#include <algorithm>
#include <vector>

#include "ops/families.h"
#include "ops/grad_builder.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

constexpr int64_t kMaxPooledExtent = int64_t{1} << 56;

bool IsMaxGrad(const OpView& op) { return op.op() == "MaxPoolGrad"; }

// ---- rules --------------------------------------------------------------------------------------

AttrList WindowAttrsOf(const OpView& op) {
  AttrList attrs;
  for (std::string_view name : {"auto_pad", "ceil_mode", "count_include_pad", "dilations",
                                "kernel_shape", "pads", "strides"}) {
    if (const AttrValue* value = op.attrs().Find(name)) attrs.Set(name, *value);
  }
  return attrs;
}

std::vector<int64_t> AxesOfSpace(const Type& x) {
  std::vector<int64_t> axes;
  for (int d = 2; d < x.rank(); ++d) axes.push_back(d);
  return axes;
}

// The number of elements of each channel.
Result<int64_t> KnownSpace(const GradBuilder& g) {
  const Type& x = g.type(g.input(0));
  int64_t elements = 1;
  bool known = x.rank_known;
  for (int d = 2; known && d < x.rank(); ++d) {
    known = IsKnown(x.dims[d]);
    elements *= x.dims[d];
  }
  if (!known) return Unsupported("the spatial dims of the input are not known; declare them");
  return elements;
}

// |x|^p and its inverse.
ValueId PowerOfSize(GradBuilder& g, ValueId x, int64_t p) {
  if (p == 2) return g.Square(x);
  const ValueId size = g.Add("Abs", {x});
  return p == 1 ? size : g.Add("Pow", {size, g.Scalar(static_cast<double>(p), x)});
}
ValueId Root(GradBuilder& g, ValueId sum, int64_t p) {
  if (p == 1) return sum;
  if (p == 2) return g.Add("Sqrt", {sum});
  return g.Add("Pow", {sum, g.Scalar(1 / static_cast<double>(p), sum)});
}

}  // namespace

Status GradMaxPool(GradBuilder& g) {
  if (g.grad() == kNoValue) return OkStatus();
  g.Set(0, g.AddMsrt("MaxPoolGrad", {g.grad(), g.input(0)}, WindowAttrsOf(g.op())));
  return OkStatus();
}

Status GradAveragePool(GradBuilder& g) {
  g.Set(0, g.AddMsrt("AveragePoolGrad", {g.grad(), g.ShapeOf(g.input(0))}, WindowAttrsOf(g.op())));
  return OkStatus();
}

// The sum over a window is a convolution of each channel with ones.
Status GradLpPool(GradBuilder& g) {
  MSRT_RETURN_IF_ERROR(KnownSpace(g).status());
  const Type x = g.type(g.input(0));
  const auto kernel = g.op().Ints("kernel_shape");
  MSRT_ASSIGN_OR_RETURN(const Windows windows,
                        WindowsOf(g.op(), x.dims, kernel, g.op().Int("ceil_mode") != 0));
  const auto rank = static_cast<size_t>(windows.rank);
  std::vector<int64_t> plane = {-1, 1}, ones = {1, 1}, pads(2 * rank);
  for (size_t i = 0; i < rank; ++i) {
    const WindowAxis& a = windows.axis[i];
    if (a.in == 0 || a.out == 0) return OkStatus();
    plane.push_back(a.in);
    ones.push_back(a.kernel);
    pads[i] = a.pad_begin;
    pads[rank + i] = std::max<int64_t>(a.stride * (a.out - 1) + a.span() - a.pad_begin - a.in, 0);
  }
  AttrList attrs{{"pads", std::move(pads)}};
  for (std::string_view name : {"strides", "dilations"}) {
    if (const AttrValue* value = g.op().attrs().Find(name)) attrs.Set(name, *value);
  }
  const int64_t p = g.op().Int("p");
  const ValueId powers =
      g.Add("Reshape", {PowerOfSize(g, g.input(0), p)}, {{"shape", std::move(plane)}});
  const ValueId weights = g.Add("Expand", {g.Scalar(1, g.input(0)), g.Ints(std::move(ones))});
  const ValueId sums = g.Add("Conv", {powers, weights}, std::move(attrs));
  g.SetByComposition({Root(g, g.ReshapeTo(sums, g.output(0)), p)});
  return OkStatus();
}

Status GradGlobalAveragePool(GradBuilder& g) {
  MSRT_ASSIGN_OR_RETURN(const int64_t elements, KnownSpace(g));
  g.Set(0, g.ExpandTo(g.Times(g.grad(), 1 / static_cast<double>(elements)), g.input(0)));
  return OkStatus();
}

// A pool over one axis, whose window is the whole of it.
Status GradGlobalMaxPool(GradBuilder& g) {
  MSRT_ASSIGN_OR_RETURN(const int64_t elements, KnownSpace(g));
  if (elements == 0) return OkStatus();
  const ValueId line =
      g.Add("Reshape", {g.input(0)}, {{"shape", std::vector<int64_t>{0, 0, elements}}});
  const ValueId y = g.Add("MaxPool", {line}, {{"kernel_shape", std::vector<int64_t>{elements}}});
  g.SetByComposition({g.ReshapeTo(y, g.output(0))});
  return OkStatus();
}

Status GradGlobalLpPool(GradBuilder& g) {
  if (!g.type(g.input(0)).rank_known)
    return Unsupported("the rank of the input is not known; declare it");
  const int64_t p = g.op().Int("p");
  const ValueId powers = PowerOfSize(g, g.input(0), p);
  const std::vector<int64_t> axes = AxesOfSpace(g.type(g.input(0)));
  g.SetByComposition({Root(g, axes.empty() ? powers : g.SumOver(powers, axes, true), p)});
  return OkStatus();
}

namespace {

// Each element of the gradient of Y has the element at the position of its window's maximum, which
// the indices of MaxPool name. A window that is padding only has index -1 and takes part in
// nothing.
Status GradMaxPoolGrad(GradBuilder& g) {
  if (!g.wants(0)) return OkStatus();  // the maximum stays where it is when X moves a little
  AttrList attrs = WindowAttrsOf(g.op());
  const ValueId indices = g.AddNode("", "MaxPool", {g.input(1)}, std::move(attrs), 2)[1];
  const ValueId zero = g.Add("Squeeze", {g.Ints({0})});
  const ValueId line = g.Add("Reshape", {g.grad()}, {{"shape", std::vector<int64_t>{-1}}});
  const ValueId found = g.Add("Gather", {line, g.Add("Max", {indices, zero})});
  g.Set(0, g.Add("Where", {g.Add("Less", {indices, zero}), g.Scalar(0, g.grad()), found}));
  return OkStatus();
}

Status GradAveragePoolGrad(GradBuilder& g) {
  if (g.wants(0)) g.Set(0, g.Add("AveragePool", {g.grad()}, WindowAttrsOf(g.op())));
  return OkStatus();
}

// ---- inference ----------------------------------------------------------------------------------

// Returns the dims of the whole X; nullopt if they are in an input whose value is not known yet.
std::optional<std::vector<int64_t>> WholeDims(const OpView& op) {
  if (!IsMaxGrad(op)) return IntsAttrOrInput(op, "input_dims", 1);
  if (op.Has("input_dims")) {
    const auto dims = op.Ints("input_dims");
    return std::vector<int64_t>(dims.begin(), dims.end());
  }
  if (!op.input(1).rank_known) return std::nullopt;
  return std::vector<int64_t>(op.input(1).dims.begin(), op.input(1).dims.end());
}

Result<Windows> WholeWindows(const OpView& op, const Dims& whole) {
  return WindowsOf(op, whole, op.Ints("kernel_shape"), op.Int("ceil_mode") != 0);
}

// A piece has the position of its parts.
Status CheckPiece(const OpView& op, int rank) {
  const bool max = IsMaxGrad(op);
  for (std::string_view attr :
       {"input_dims", "grad_begin", "input_begin", "result_begin", "result_dims"}) {
    const size_t expected = attr == "input_begin" && !max ? 0 : static_cast<size_t>(rank);
    if (op.Ints(attr).size() != expected)
      return InvalidModel(attr, " = ", op.Ints(attr), " of a piece, must have ", expected,
                          " elements");
  }
  for (size_t i = 0; i < static_cast<size_t>(rank); ++i) {
    const int64_t whole = op.Ints("input_dims")[i], begin = op.Ints("result_begin")[i];
    if (begin > whole || op.Ints("result_dims")[i] > whole - begin)
      return InvalidModel("result_dims = ", op.Ints("result_dims"),
                          " at result_begin = ", op.Ints("result_begin"), " are not part of ",
                          op.Ints("input_dims"));
  }
  return OkStatus();
}

Status InferPoolGrad(InferContext& c) {
  const OpView& op = c.op();
  if (!IsMaxGrad(op))
    MSRT_RETURN_IF_ERROR(CheckListAttrOrInput(op, "input_dims", 1, /*required=*/true));
  const int rank = 2 + static_cast<int>(op.Ints("kernel_shape").size());
  MSRT_RETURN_IF_ERROR(CheckRank(c, 0, rank));
  if (IsMaxGrad(op)) MSRT_RETURN_IF_ERROR(CheckRank(c, 1, rank));
  const auto whole = WholeDims(op);
  if (!whole) {
    c.SetOutput(0, c.dtype(0), Dims::Filled(rank, kUnknownDim));
    return OkStatus();
  }
  if (whole->size() != static_cast<size_t>(rank))
    return InvalidModel("the dims of X are ", *whole, ", must be ", rank);
  for (int64_t d : *whole) {
    if (IsKnown(d) && d > kMaxPooledExtent)
      return InvalidModel("the dims of X are ", *whole, ": each must be at most ",
                          kMaxPooledExtent);
  }
  const Dims dims(*whole);
  MSRT_ASSIGN_OR_RETURN(const Windows windows, WholeWindows(op, dims));
  if (op.Has("result_dims")) {
    MSRT_RETURN_IF_ERROR(CheckPiece(op, rank));
    c.SetOutput(0, c.dtype(0), Dims(op.Ints("result_dims")));
    return OkStatus();
  }
  for (int i = 0; c.input(0).rank_known && i < rank; ++i) {
    const int64_t dim = i < 2 ? dims[i] : windows.axis[static_cast<size_t>(i) - 2].out;
    MSRT_RETURN_IF_ERROR(
        SameDim(dim, c.dims(0)[i], StrCat("dim ", i, " of the pool's output and of its gradient"))
            .status());
  }
  c.SetOutput(0, c.dtype(0), dims);
  return OkStatus();
}

// ---- iteration space ----------------------------------------------------------------------------

// The inputs of the windows that reach an interval of the result.
class WindowsAround : public IntervalMap {
 public:
  WindowsAround(const WindowAxis& to_grad, const WindowAxis& to_input)
      : to_grad_(to_grad), to_input_(to_input) {}
  Interval Touched(Interval result) const override {
    const Interval grad = TransposedNeedsOf(to_grad_, result);
    return grad.empty() ? Interval{0, 0} : NeedsOf(to_input_, grad);
  }

 private:
  WindowAxis to_grad_, to_input_;
};

// The window of an axis in the coordinates of a piece's gradient and of another of its parts.
WindowAxis Relative(const PoolGradAxis& a, const PoolGradAxis::Part& part, int64_t extent) {
  WindowAxis w = a.window;
  w.pad_begin += part.begin - w.stride * a.grad.begin;
  w.in = extent;
  return w;
}

Status ResolvePoolGrad(const OpView& op, ResolvedSpace* space) {
  const Dims &grad = op.input(0).dims, &result = op.output(0).dims;
  MSRT_ASSIGN_OR_RETURN(const PoolGradShape s, PoolGradShapeOf(op));
  AddAxes(AxisKind::kParallel, Dims{result[0], result[1]}, &space->axes);
  space->inputs[0] = TensorMap::Same(grad);
  space->outputs[0] = TensorMap::Same(result);
  if (IsMaxGrad(op)) space->inputs[1] = TensorMap::Same(op.input(1).dims);
  else DropInputs(1, space);
  for (int i = 0; i < s.rank; ++i) {
    const PoolGradAxis& a = s.axis[static_cast<size_t>(i)];
    space->axes.Add(AxisKind::kWindow, a.result.extent);
    const WindowAxis to_grad = Relative(a, a.result, a.grad.extent);
    space->inputs[0].dims[static_cast<size_t>(i) + 2] = TransposedMapOf(to_grad, i + 2);
    if (!IsMaxGrad(op)) continue;
    space->inputs[1].dims[static_cast<size_t>(i) + 2] = DimMap::Function(
        i + 2, a.input.extent,
        std::make_shared<WindowsAround>(to_grad, Relative(a, a.input, a.input.extent)));
  }
  return OkStatus();
}

Status LocalizePoolGrad(const OpView& op, const Box&, std::span<const Box> inputs,
                        std::span<const Box> outputs, AttrList* attrs) {
  const Dims& result = op.output(0).dims;
  const auto set_begin = [&](std::string_view attr, const Box& box) {
    const auto outer = op.Ints(attr);
    std::vector<int64_t> begin(outer.begin(), outer.end());
    begin.resize(static_cast<size_t>(box.rank()));
    for (int i = 0; i < box.rank(); ++i) begin[static_cast<size_t>(i)] += box[i].begin;
    attrs->Set(attr, std::move(begin));
  };
  if (!op.Has("result_dims"))
    attrs->Set("input_dims", std::vector<int64_t>(result.begin(), result.end()));
  set_begin("grad_begin", inputs[0]);
  if (IsMaxGrad(op)) set_begin("input_begin", inputs[1]);
  set_begin("result_begin", outputs[0]);
  attrs->Set("result_dims", ExtentsOf(outputs[0]));
  return OkStatus();
}

constexpr SpaceDef kPoolGradSpace{.localize = LocalizePoolGrad, .resolve = ResolvePoolGrad};

Cost PoolGradCost(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  cost.flops = static_cast<double>(op.input(0).elements());
  for (int64_t k : op.Ints("kernel_shape")) cost.flops *= static_cast<double>(k);
  return cost;
}

// ---- entries ------------------------------------------------------------------------------------

constexpr AttrDef PieceAttr(std::string_view name) {
  return {.name = name,
          .kind = AttrKind::kInts,
          .min_int = 0,
          .max_int = kMaxPooledExtent,
          .max_count = 2 + kMaxSpace,
          .local = true};
}
constexpr AttrDef kInputDimsAttr{.name = "input_dims",
                                 .kind = AttrKind::kInts,
                                 .min_int = 0,
                                 .max_int = kMaxPooledExtent,
                                 .max_count = 2 + kMaxSpace};

constexpr AttrDef kMaxPoolGradAttrs[] = {kAutoPadAttr,
                                         kCeilModeAttr,
                                         kDilationsAttr,
                                         kRequiredKernelAttr,
                                         kPadsAttr,
                                         kStridesAttr,
                                         PieceAttr("input_dims"),
                                         PieceAttr("grad_begin"),
                                         PieceAttr("input_begin"),
                                         PieceAttr("result_begin"),
                                         PieceAttr("result_dims")};
constexpr AttrDef kAveragePoolGradAttrs[] = {
    kAutoPadAttr,
    kCeilModeAttr,
    {.name = "count_include_pad", .min_int = 0, .max_int = 1},
    kDilationsAttr,
    kRequiredKernelAttr,
    kPadsAttr,
    kStridesAttr,
    kInputDimsAttr,
    PieceAttr("grad_begin"),
    PieceAttr("input_begin"),
    PieceAttr("result_begin"),
    PieceAttr("result_dims")};
constexpr ParamDef kMaxPoolGradInputs[] = {{.name = "dY", .types = kFloatTypes, .group = 1},
                                           {.name = "X", .types = kFloatTypes, .group = 1}};
constexpr ParamDef kAveragePoolGradInputs[] = {
    {.name = "dY", .types = kFloatTypes},
    {.name = "input_dims", .types = kIndexTypes, .kind = ParamDef::kOptional}};

constexpr OpDef kPoolGradOps[] = {
    {.name = "MaxPoolGrad",
     .domain = "msrt",
     .version = 1,
     .attrs = kMaxPoolGradAttrs,
     .inputs = kMaxPoolGradInputs,
     .infer = InferPoolGrad,
     .grad = GradMaxPoolGrad,
     .space = &kPoolGradSpace,
     .cost = PoolGradCost},
    {.name = "AveragePoolGrad",
     .domain = "msrt",
     .version = 1,
     .attrs = kAveragePoolGradAttrs,
     .inputs = kAveragePoolGradInputs,
     .infer = InferPoolGrad,
     .grad = GradAveragePoolGrad,
     .space = &kPoolGradSpace,
     .cost = PoolGradCost},
};

}  // namespace

Result<PoolGradShape> PoolGradShapeOf(const OpView& op) {
  const Dims whole = op.Has("result_dims") ? Dims(op.Ints("input_dims")) : op.output(0).dims;
  MSRT_ASSIGN_OR_RETURN(const Windows windows, WholeWindows(op, whole));
  PoolGradShape s{.rank = windows.rank, .planes = op.output(0).dims.product(0, 2), .axis = {}};
  const auto part = [&](std::string_view attr, const Dims& dims, size_t i) {
    const auto begin = op.Ints(attr);
    return PoolGradAxis::Part{begin.empty() ? 0 : begin[i + 2], dims[static_cast<int>(i) + 2]};
  };
  for (size_t i = 0; i < static_cast<size_t>(windows.rank); ++i) {
    PoolGradAxis& a = s.axis[i];
    a.window = windows.axis[i];
    a.grad = part("grad_begin", op.input(0).dims, i);
    a.result = part("result_begin", op.output(0).dims, i);
    if (IsMaxGrad(op)) a.input = part("input_begin", op.input(1).dims, i);
  }
  return s;
}

std::span<const OpDef> PoolGradOps() { return kPoolGradOps; }

}  // namespace msrt
