// Resize, and the ops that move elements between channels and space: DepthToSpace and SpaceToDepth.
#include <vector>

#include "core/base/checked_math.h"
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"
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

Result<Resample> ResolveLists(const OpView& op) {
  const ResizeLists lists = ResizeListsOf(op);
  if (!lists.roi || !lists.scales || !lists.sizes)
    return Unsupported("a Resize cannot be cut before its roi, scales and sizes are known");
  return ResampleOf(op, op.input(0).dims, lists);
}

// Boxes are relative to this node's tensors, the geometry to the whole ones.
Interval ShiftedBy(Interval i, int64_t by) { return {i.begin + by, i.end + by}; }

class ResampledDim : public IntervalMap {
 public:
  ResampledDim(std::shared_ptr<const Resample> resample, int dim)
      : resample_(std::move(resample)), dim_(dim) {}
  Interval Touched(Interval piece) const override {
    const ResizeAxis& a = resample_->axis[static_cast<size_t>(dim_)];
    const Interval needs = ResizeNeeds(*resample_, a, ShiftedBy(piece, a.out_piece.begin));
    return needs.empty() ? Interval{0, 0} : ShiftedBy(needs, -a.in_piece.begin);
  }

 private:
  std::shared_ptr<const Resample> resample_;
  int dim_;
};

Status ResolveResize(const OpView& op, ResolvedSpace* space) {
  MSRT_ASSIGN_OR_RETURN(const Resample resolved, ResolveLists(op));
  const auto r = std::make_shared<const Resample>(resolved);
  for (int i = 0; i < r->rank; ++i) {
    const ResizeAxis& a = r->axis[static_cast<size_t>(i)];
    const int64_t extent = op.input(0).dims[i], out = a.out_piece.size();
    const bool same = r->Unchanged(a);
    space->axes.Add(same ? AxisKind::kParallel : AxisKind::kWindow, out);
    space->inputs[0].dims[static_cast<size_t>(i)] =
        same ? DimMap::Affine(i, a.out_piece.begin - a.in_piece.begin, 1, extent)
             : DimMap::Function(i, extent, std::make_shared<ResampledDim>(r, i));
  }
  DropInputs(1, space);
  space->outputs[0] = TensorMap::Same(op.output(0).dims);
  return OkStatus();
}

Status ResizeLocalize(const OpView& op, const Box& box, std::span<const Box> inputs,
                      std::span<const Box>, AttrList* attrs) {
  MSRT_ASSIGN_OR_RETURN(const Resample r, ResolveLists(op));
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
  const ResizeLists lists = ResizeListsOf(op);
  if (op.has_input(kResizeRoiInput)) attrs->Set("roi", *lists.roi);
  if (op.has_input(kResizeScalesInput)) attrs->Set("scales", *lists.scales);
  if (op.has_input(kResizeSizesInput)) attrs->Set("sizes", *lists.sizes);
  return OkStatus();
}

constexpr SpaceDef kResizeSpace{.localize = ResizeLocalize, .resolve = ResolveResize};

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
Status ResolveBlocks(const OpView& op, ResolvedSpace* space) {
  const bool to_space = IsDepthToSpace(op);
  const Dims& spacious = to_space ? op.output(0).dims : op.input(0).dims;
  const Dims& deep = to_space ? op.input(0).dims : op.output(0).dims;
  const bool neighbours = to_space && op.String("mode") == "CRD";
  const int64_t block = op.Int("blocksize");
  space->axes.Add(AxisKind::kParallel, spacious[0]);
  space->axes.Add(neighbours ? AxisKind::kParallel : AxisKind::kWhole, spacious[1]);
  AddAxes(AxisKind::kParallel, Dims{deep[2], deep[3]}, &space->axes);
  TensorMap spacious_map = TensorMap::Same(spacious), deep_map = TensorMap::Same(deep);
  spacious_map.dims[2] = DimMap::Block(2, block, spacious[2]);
  spacious_map.dims[3] = DimMap::Block(3, block, spacious[3]);
  deep_map.dims[1] = DimMap::Block(1, block * block, deep[1]);
  space->inputs[0] = to_space ? deep_map : spacious_map;
  space->outputs[0] = to_space ? spacious_map : deep_map;
  return OkStatus();
}

constexpr SpaceDef kBlockSpace{.resolve = ResolveBlocks};

// ---- entries ------------------------------------------------------------------------------------

constexpr std::string_view kPolicies[] = {"stretch", "not_larger", "not_smaller"};
constexpr int64_t kMaxResizedDim = int64_t{1} << 56;

constexpr AttrDef PlaceAttr(std::string_view name) {
  return {.name = name,
          .kind = AttrKind::kInts,
          .min_int = 0,
          .max_int = kMaxResizedDim,
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
     .max_int = kMaxResizedDim,
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
     .grad = GradResize,
     .space = &kResizeSpace},
    {.name = "DepthToSpace",
     .attrs = kDepthToSpaceAttrs,
     .inputs = kMovedInput,
     .infer = InferDepthToSpace,
     .grad = GradDepthToSpace,
     .space = &kBlockSpace},
    {.name = "SpaceToDepth",
     .attrs = kSpaceToDepthAttrs,
     .inputs = kMovedInput,
     .infer = InferSpaceToDepth,
     .grad = GradSpaceToDepth,
     .space = &kBlockSpace},
};

}  // namespace

std::span<const OpDef> ResizeOps() { return kResizeOps; }

}  // namespace msrt
