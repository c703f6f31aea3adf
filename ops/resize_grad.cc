// Gradients of Resize, DepthToSpace and SpaceToDepth. A Resize is linear: msrt.ResizeGrad, its
// transpose, adds each element of the gradient to the elements that were interpolated, with the
// same weights. The transpose of msrt.ResizeGrad is Resize again.
#include <vector>

#include "ops/families.h"
#include "ops/grad_positions.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"
#include "ops/resample.h"

namespace msrt {
namespace {

constexpr size_t kInputShape = 4;

// The attributes that say how elements are interpolated.
AttrList InterpolationAttrs(const OpView& op) {
  AttrList attrs = op.attrs();
  attrs.Remove("extrapolation_value");  // does not depend on the input
  attrs.Remove("input_shape");
  return attrs;
}

// ---- msrt.ResizeGrad ----------------------------------------------------------------------------

Status InferResizeGrad(InferContext& c) {
  const OpView& op = c.op();
  MSRT_RETURN_IF_ERROR(CheckListAttrOrInput(op, "input_shape", kInputShape, true));
  if (op.String("mode") == "nearest" && op.Int("antialias") != 0)
    return InvalidModel("antialias = 1 needs mode = 'linear' or 'cubic'");
  const Type& grad = c.input(0);
  const auto shape = IntsAttrOrInput(op, "input_shape", kInputShape);
  if (!shape) {
    c.SetOutput(0, grad.rank_known
                       ? Type::Tensor(grad.dtype, Dims::Filled(grad.rank(), kUnknownDim))
                       : Type::UnrankedTensor(grad.dtype));
    return OkStatus();
  }
  if (shape->size() > kMaxRank)
    return InvalidModel("input_shape has ", shape->size(), " elements, at most ", kMaxRank,
                        " are allowed");
  for (int64_t d : *shape) {
    if (d < 0) return InvalidModel("input_shape = ", *shape, ": each must be at least 0");
  }
  const Dims dims(*shape);
  MSRT_RETURN_IF_ERROR(CheckRank(c, 0, dims.rank()));
  for (size_t i : {kResizeRoiInput, kResizeScalesInput, kResizeSizesInput}) {
    if (c.has_input(i)) MSRT_RETURN_IF_ERROR(CheckRank(c, i, 1));
  }
  MSRT_ASSIGN_OR_RETURN(const Resample r, ResampleOf(op, dims, ResizeListsOf(op)));
  for (int i = 0; grad.rank_known && i < r.rank; ++i) {
    MSRT_RETURN_IF_ERROR(SameDim(grad.dims[i], r.axis[static_cast<size_t>(i)].out,
                                 StrCat("dim ", i, " of the gradient and of the resized tensor"))
                             .status());
  }
  c.SetOutput(0, grad.dtype, dims);
  return OkStatus();
}

// Axes that are copied can be cut. Sizes that keep the aspect ratio are relative to each other, so
// such a node stays whole.
Status ResolveResizeGrad(const OpView& op, ResolvedSpace* space) {
  const ResizeLists lists = ResizeListsOf(op);
  if (!lists.roi || !lists.scales || !lists.sizes ||
      !IntsAttrOrInput(op, "input_shape", kInputShape)) {
    return Unsupported("cannot be cut before its lists are known");
  }
  if (op.String("keep_aspect_ratio_policy") != "stretch")
    return Unsupported("sizes that keep the aspect ratio cannot be cut");
  const Dims& out = op.output(0).dims;
  MSRT_ASSIGN_OR_RETURN(const Resample r, ResampleOf(op, out, lists));
  for (int i = 0; i < r.rank; ++i) {
    const bool same = r.Unchanged(r.axis[static_cast<size_t>(i)]);
    space->axes.Add(same ? AxisKind::kParallel : AxisKind::kWhole, out[i]);
    if (!same) continue;
    space->inputs[0].dims[static_cast<size_t>(i)] = DimMap::Same(i, out[i]);
  }
  DropInputs(1, space);
  space->outputs[0] = TensorMap::Same(out);
  return OkStatus();
}

Status LocalizeResizeGrad(const OpView& op, const Box& box, std::span<const Box>,
                          std::span<const Box>, AttrList* attrs) {
  const ResizeLists lists = ResizeListsOf(op);
  MSRT_ASSIGN_OR_RETURN(const Resample r, ResampleOf(op, op.output(0).dims, lists));
  attrs->Set("input_shape", ExtentsOf(box));
  if (!lists.roi->empty()) attrs->Set("roi", *lists.roi);
  if (!lists.scales->empty()) attrs->Set("scales", *lists.scales);
  if (lists.sizes->empty()) return OkStatus();
  std::vector<int64_t> sizes = *lists.sizes, axes;
  for (int64_t a : op.Ints("axes")) axes.push_back(a < 0 ? a + r.rank : a);
  for (int i = 0; axes.size() < sizes.size() && i < r.rank; ++i) axes.push_back(i);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    if (r.Unchanged(r.axis[axis])) sizes[i] = box[static_cast<int>(axis)].size();
  }
  attrs->Set("sizes", std::move(sizes));
  return OkStatus();
}

constexpr SpaceDef kResizeGradSpace{.localize = LocalizeResizeGrad, .resolve = ResolveResizeGrad};

Status GradResizeGrad(GradBuilder& g) {
  g.Set(0, g.Add("Resize", {g.grad(), g.input(1), g.input(2), g.input(3)},
                 InterpolationAttrs(g.op())));
  return OkStatus();
}

constexpr std::string_view kAspectPolicies[] = {"stretch", "not_larger", "not_smaller"};
constexpr AttrDef kResizeGradAttrs[] = {
    {.name = "antialias", .min_int = 0, .max_int = 1},
    {.name = "axes",
     .kind = AttrKind::kInts,
     .min_int = -kMaxRank,
     .max_int = kMaxRank - 1,
     .max_count = kMaxRank},
    {.name = "coordinate_transformation_mode",
     .kind = AttrKind::kString,
     .default_string = "half_pixel",
     .choices = kResizeCoordinates},
    {.name = "cubic_coeff_a",
     .kind = AttrKind::kFloat,
     .default_float = -0.75,
     .min_float = -1e6,
     .max_float = 1e6},
    {.name = "exclude_outside", .min_int = 0, .max_int = 1},
    {.name = "keep_aspect_ratio_policy",
     .kind = AttrKind::kString,
     .default_string = "stretch",
     .choices = kAspectPolicies},
    {.name = "mode",
     .kind = AttrKind::kString,
     .default_string = "nearest",
     .choices = kResizeModes},
    {.name = "nearest_mode",
     .kind = AttrKind::kString,
     .default_string = "round_prefer_floor",
     .choices = kResizeNearest},
    {.name = "roi", .kind = AttrKind::kFloats, .max_count = 2 * kMaxRank},
    {.name = "scales", .kind = AttrKind::kFloats, .max_count = kMaxRank},
    {.name = "sizes", .kind = AttrKind::kInts, .min_int = 0, .max_count = kMaxRank},
    {.name = "input_shape", .kind = AttrKind::kInts, .min_int = 0, .max_count = kMaxRank},
};
constexpr ParamDef kResizeGradInputs[] = {
    {.name = "dY", .types = kFloatTypes},
    {.name = "roi",
     .types = DTypeSet{DType::kF64, DType::kF32, DType::kF16},
     .kind = ParamDef::kOptional},
    {.name = "scales", .types = DTypeSet{DType::kF32}, .kind = ParamDef::kOptional},
    {.name = "sizes", .types = DTypeSet{DType::kI64}, .kind = ParamDef::kOptional},
    {.name = "input_shape", .types = DTypeSet{DType::kI64}, .kind = ParamDef::kOptional},
};

constexpr OpDef kResizeGradOps[] = {
    {.name = "ResizeGrad",
     .domain = "msrt",
     .version = 1,
     .attrs = kResizeGradAttrs,
     .inputs = kResizeGradInputs,
     .infer = InferResizeGrad,
     .grad = GradResizeGrad,
     .space = &kResizeGradSpace},
};

}  // namespace

std::span<const OpDef> ResizeGradOps() { return kResizeGradOps; }

// ---- rules --------------------------------------------------------------------------------------

Status GradResize(GradBuilder& g) {
  if (g.wants(kResizeRoiInput) || g.wants(kResizeScalesInput))
    return Unsupported("there is no gradient with respect to roi or scales; make them constants");
  const Type x = g.type(g.input(0));
  AttrList attrs = InterpolationAttrs(g.op());
  std::vector<ValueId> inputs = {g.grad(), g.input(1), g.input(2), g.input(3)};
  if (x.concrete()) attrs.Set("input_shape", std::vector<int64_t>(x.dims.begin(), x.dims.end()));
  else inputs.push_back(g.ShapeOf(g.input(0)));
  g.Set(0, g.AddMsrt("ResizeGrad", std::move(inputs), std::move(attrs)));
  return OkStatus();
}

// SpaceToDepth puts the places of a block before the channels, CRD wants them after.
Status GradDepthToSpace(GradBuilder& g) {
  const int64_t block = g.op().Int("blocksize");
  const ValueId deep = g.Add("SpaceToDepth", {g.grad()}, {{"blocksize", block}});
  if (g.op().String("mode") != "CRD") {
    g.Set(0, deep);
    return OkStatus();
  }
  if (!g.ok()) return g.status();
  DimList split(g);
  split.Add(deep, 0).Add(block * block).Add(g.grad(), 1).Add(deep, 2, 4);
  const ValueId channels_first = Permuted(g, ReshapeToDims(g, deep, split), {0, 2, 1, 3, 4});
  g.Set(0, g.ReshapeTo(channels_first, g.input(0)));
  return OkStatus();
}

Status GradSpaceToDepth(GradBuilder& g) {
  g.Set(0, g.Add("DepthToSpace", {g.grad()}, {{"blocksize", g.op().Int("blocksize")}}));
  return OkStatus();
}

}  // namespace msrt
