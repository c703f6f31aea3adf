// Resize, and the ops that move elements between channels and space: DepthToSpace and SpaceToDepth.
#include <vector>

#include "core/base/checked_math.h"
#include "ops/families.h"
#include "ops/infer.h"
#include "ops/resample.h"

namespace msrt {
namespace {

// ---- Resize -------------------------------------------------------------------------------------

// Types to which an interpolation may be rounded: those that a double represents exactly.
constexpr DTypeSet kInterpolatedTypes =
    kFloatTypes |
    DTypeSet{DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI32, DType::kU32};

Status InferResize(InferContext& c) {
  const auto mode = c.op().String("mode");
  if (mode != "nearest" && !kInterpolatedTypes.Has(c.dtype(0))) {
    return InvalidModel("mode = '", mode, "' needs an input of one of ", kInterpolatedTypes.Names(),
                        ", has ", c.dtype(0));
  }
  if (mode == "nearest" && c.op().Int("antialias") != 0)
    return InvalidModel("antialias = 1 needs mode = 'linear' or 'cubic'");
  if (!c.input(0).rank_known) {
    c.SetOutput(0, Type::UnrankedTensor(c.dtype(0)));
    return OkStatus();
  }
  for (size_t i : {kResizeRoiInput, kResizeScalesInput, kResizeSizesInput}) {
    if (c.has_input(i)) MSRT_RETURN_IF_ERROR(CheckRank(c, i, 1));
  }
  MSRT_ASSIGN_OR_RETURN(const Resample r, ResampleOf(c.op(), c.dims(0), ResizeListsOf(c.op())));
  Dims out;
  for (int i = 0; i < r.rank; ++i) {
    const ResizeAxis& a = r.axis[static_cast<size_t>(i)];
    out.push_back(c.op().Has("output_dims") ? c.op().Ints("output_dims")[static_cast<size_t>(i)]
                                            : a.out);
  }
  c.SetOutput(0, c.dtype(0), out);
  return OkStatus();
}

// Only the usual form can be cut: lists that are inputs could change.
Result<Resample> ResolveResize(const OpView& op) {
  for (size_t i = 1; i < op.input_count(); ++i) {
    if (op.has_input(i))
      return Unsupported("a Resize whose roi, scales or sizes are inputs cannot be cut");
  }
  return ResampleOf(op, op.input(0).dims, ResizeListsOf(op));
}

Status ResizeAxes(const OpView& op, IterationSpace* space) {
  MSRT_ASSIGN_OR_RETURN(const Resample r, ResolveResize(op));
  for (int i = 0; i < r.rank; ++i) {
    const ResizeAxis& a = r.axis[static_cast<size_t>(i)];
    space->Add(r.Unchanged(a) ? AxisKind::kParallel : AxisKind::kWindow, a.out_piece.size());
  }
  return OkStatus();
}

// Boxes are relative to this node's tensors, the geometry to the whole ones.
Interval ShiftedBy(Interval i, int64_t by) { return {i.begin + by, i.end + by}; }

Status ResizeOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  MSRT_ASSIGN_OR_RETURN(const Resample r, ResolveResize(op));
  for (int i = 0; i < r.rank; ++i) {
    const ResizeAxis& a = r.axis[static_cast<size_t>(i)];
    const Interval needs = ResizeNeeds(r, a, ShiftedBy(box[i], a.out_piece.begin));
    inputs[0].push_back(needs.empty() ? Interval{0, 0} : ShiftedBy(needs, -a.in_piece.begin));
  }
  return OkStatus();
}

Status ResizeResults(const OpView&, const Box& box, std::span<Box> outputs) {
  outputs[0] = box;
  return OkStatus();
}

Status ResizeLocalize(const OpView& op, const Box& box, std::span<const Box> inputs,
                      std::span<const Box>, AttrList* attrs) {
  MSRT_ASSIGN_OR_RETURN(const Resample r, ResolveResize(op));
  std::vector<int64_t> dims, origin, out_origin, out_dims;
  for (int i = 0; i < r.rank; ++i) {
    const ResizeAxis& a = r.axis[static_cast<size_t>(i)];
    dims.push_back(a.in);
    origin.push_back(a.in_piece.begin + inputs[0][i].begin);
    out_origin.push_back(a.out_piece.begin + box[i].begin);
    out_dims.push_back(box[i].size());
  }
  attrs->Set("input_dims", std::move(dims));
  attrs->Set("input_origin", std::move(origin));
  attrs->Set("output_origin", std::move(out_origin));
  attrs->Set("output_dims", std::move(out_dims));
  return OkStatus();
}

constexpr SpaceDef kResizeSpace{.axes = ResizeAxes,
                                .operands = ResizeOperands,
                                .results = ResizeResults,
                                .localize = ResizeLocalize};

// ---- DepthToSpace, SpaceToDepth -----------------------------------------------------------------

Result<Dims> BlockInput(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckRank(c, 0, 4));
  return c.input(0).rank_known ? c.dims(0) : Dims::Filled(4, kUnknownDim);
}

Result<int64_t> TimesBlock(int64_t dim, int64_t factor) {
  if (!IsKnown(dim)) return kUnknownDim;
  int64_t product;
  if (!CheckedMul(dim, factor, &product))
    return InvalidModel("an axis of ", dim, " elements times ", factor, " is too long");
  return product;
}

Result<int64_t> DividedByBlock(int64_t dim, int64_t factor, std::string_view what) {
  if (!IsKnown(dim)) return kUnknownDim;
  if (dim % factor != 0)
    return InvalidModel(what, " ", dim, " is not a multiple of ", factor,
                        ", which blocksize requires");
  return dim / factor;
}

Status InferDepthToSpace(InferContext& c) {
  const int64_t block = c.op().Int("blocksize");
  MSRT_ASSIGN_OR_RETURN(Dims d, BlockInput(c));
  MSRT_ASSIGN_OR_RETURN(d[1], DividedByBlock(d[1], block * block, "the number of channels"));
  MSRT_ASSIGN_OR_RETURN(d[2], TimesBlock(d[2], block));
  MSRT_ASSIGN_OR_RETURN(d[3], TimesBlock(d[3], block));
  c.SetOutput(0, c.dtype(0), d);
  return OkStatus();
}

Status InferSpaceToDepth(InferContext& c) {
  const int64_t block = c.op().Int("blocksize");
  MSRT_ASSIGN_OR_RETURN(Dims d, BlockInput(c));
  MSRT_ASSIGN_OR_RETURN(d[1], TimesBlock(d[1], block * block));
  MSRT_ASSIGN_OR_RETURN(d[2], DividedByBlock(d[2], block, "the height"));
  MSRT_ASSIGN_OR_RETURN(d[3], DividedByBlock(d[3], block, "the width"));
  c.SetOutput(0, c.dtype(0), d);
  return OkStatus();
}

bool IsDepthToSpace(const OpView& op) { return op.op() == "DepthToSpace"; }

// Axes: batch, channels of the side with more space, and rows and columns of blocks. Channels can
// be cut only in CRD order, in which the input channels of one output channel are adjacent.
Status BlockAxes(const OpView& op, IterationSpace* space) {
  const Dims& spacious = IsDepthToSpace(op) ? op.output(0).dims : op.input(0).dims;
  const Dims& deep = IsDepthToSpace(op) ? op.input(0).dims : op.output(0).dims;
  const bool neighbours = IsDepthToSpace(op) && op.String("mode") == "CRD";
  space->Add(AxisKind::kParallel, spacious[0]);
  space->Add(neighbours ? AxisKind::kParallel : AxisKind::kWhole, spacious[1]);
  space->Add(AxisKind::kParallel, deep[2]);
  space->Add(AxisKind::kParallel, deep[3]);
  return OkStatus();
}

Interval Scaled(Interval i, int64_t by) { return {i.begin * by, i.end * by}; }

Box SpaciousBox(const OpView& op, const Box& box) {
  const int64_t block = op.Int("blocksize");
  Box out = box;
  out[2] = Scaled(box[2], block);
  out[3] = Scaled(box[3], block);
  return out;
}

Box DeepBox(const OpView& op, const Box& box) {
  const int64_t block = op.Int("blocksize");
  Box out = box;
  out[1] = Scaled(box[1], block * block);
  return out;
}

Status BlockOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  inputs[0] = IsDepthToSpace(op) ? DeepBox(op, box) : SpaciousBox(op, box);
  return OkStatus();
}

Status BlockResults(const OpView& op, const Box& box, std::span<Box> outputs) {
  outputs[0] = IsDepthToSpace(op) ? SpaciousBox(op, box) : DeepBox(op, box);
  return OkStatus();
}

constexpr SpaceDef kBlockSpace{
    .axes = BlockAxes, .operands = BlockOperands, .results = BlockResults};

// ---- entries ------------------------------------------------------------------------------------

constexpr std::string_view kPolicies[] = {"stretch", "not_larger", "not_smaller"};
constexpr int64_t kMaxDim = int64_t{1} << 56;

constexpr AttrDef PlaceAttr(std::string_view name) {
  return {.name = name,
          .kind = AttrKind::kInts,
          .min_int = 0,
          .max_int = kMaxDim,
          .max_count = kMaxRank,
          .local = true};
}

constexpr AttrDef kResizeAttrs[] = {
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
    {.name = "extrapolation_value", .kind = AttrKind::kFloat},
    {.name = "keep_aspect_ratio_policy",
     .kind = AttrKind::kString,
     .default_string = "stretch",
     .choices = kPolicies},
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
    {.name = "sizes",
     .kind = AttrKind::kInts,
     .min_int = 0,
     .max_int = kMaxDim,
     .max_count = kMaxRank},
    PlaceAttr("input_dims"),
    PlaceAttr("input_origin"),
    PlaceAttr("output_origin"),
    PlaceAttr("output_dims"),
};
constexpr ParamDef kResizeInputs[] = {
    {.name = "X", .types = kComputeTypes},
    {.name = "roi",
     .types = DTypeSet{DType::kF64, DType::kF32, DType::kF16},
     .kind = ParamDef::kOptional},
    {.name = "scales", .types = DTypeSet{DType::kF32}, .kind = ParamDef::kOptional},
    {.name = "sizes", .types = DTypeSet{DType::kI64}, .kind = ParamDef::kOptional},
};

constexpr std::string_view kDepthToSpaceModes[] = {"DCR", "CRD"};
constexpr AttrDef kBlockSizeAttr{
    .name = "blocksize", .required = true, .min_int = 1, .max_int = 2147483647};
constexpr AttrDef kDepthToSpaceAttrs[] = {
    kBlockSizeAttr,
    {.name = "mode",
     .kind = AttrKind::kString,
     .default_string = "DCR",
     .choices = kDepthToSpaceModes},
};
constexpr AttrDef kSpaceToDepthAttrs[] = {kBlockSizeAttr};
constexpr ParamDef kMovedInput[] = {{.name = "input", .types = kComputeTypes | kF8Types}};

constexpr OpDef kResizeOps[] = {
    {.name = "Resize",
     .attrs = kResizeAttrs,
     .inputs = kResizeInputs,
     .infer = InferResize,
     .grad = GradPending,
     .space = &kResizeSpace},
    {.name = "DepthToSpace",
     .attrs = kDepthToSpaceAttrs,
     .inputs = kMovedInput,
     .infer = InferDepthToSpace,
     .grad = GradPending,
     .space = &kBlockSpace},
    {.name = "SpaceToDepth",
     .attrs = kSpaceToDepthAttrs,
     .inputs = kMovedInput,
     .infer = InferSpaceToDepth,
     .grad = GradPending,
     .space = &kBlockSpace},
};

}  // namespace

std::span<const OpDef> ResizeOps() { return kResizeOps; }

}  // namespace msrt
