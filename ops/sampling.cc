// Ops that read images at positions between pixels: GridSample, AffineGrid (which makes such
// positions), RoiAlign.
#include <algorithm>

#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

constexpr int64_t kMaxExtent = int64_t{1} << 40;

// ---- GridSample: X [N, C, space...], grid [N, out..., rank of space] -> [N, C, out...] ----------

Status InferGridSample(InferContext& c) {
  const Type &x = c.input(0), &grid = c.input(1);
  if (x.rank_known && x.rank() < 3)
    return InvalidModel("input 0 has shape ", x.dims, ", must be batch, channels and spatial axes");
  if (x.rank_known) MSRT_RETURN_IF_ERROR(CheckRank(c, 1, x.rank()));
  if (grid.rank_known && grid.rank() < 3)
    return InvalidModel("input 1 has shape ", grid.dims,
                        ", must be batch, spatial axes and positions");
  if (!x.rank_known && !grid.rank_known) {
    c.SetOutput(0, Type::UnrankedTensor(x.dtype));
    return OkStatus();
  }
  const int rank = x.rank_known ? x.rank() : grid.rank();
  Dims out = Dims::Filled(rank, kUnknownDim);
  if (x.rank_known) {
    out[0] = x.dims[0];
    out[1] = x.dims[1];
  }
  if (grid.rank_known) {
    MSRT_RETURN_IF_ERROR(SameDim(grid.dims[rank - 1], rank - 2,
                                 "the last dim of the grid and the number of spatial axes")
                             .status());
    MSRT_ASSIGN_OR_RETURN(out[0], SameDim(out[0], grid.dims[0], "the batches of input and grid"));
    for (int i = 2; i < rank; ++i) out[i] = grid.dims[i - 1];
  }
  c.SetOutput(0, x.dtype, out);
  return OkStatus();
}

Cost CostGridSample(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  const double taps = op.String("mode") == "cubic" ? 4 : op.String("mode") == "linear" ? 2 : 1;
  for (int i = 2; i < op.input(0).rank(); ++i) cost.flops *= taps;
  cost.flops *= 2;
  return cost;
}

// Positions may be anywhere, so the image stays whole; batch, channels and positions are cut.
Status GridSampleOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  inputs[0] = Box::Whole(op.input(0).dims);
  inputs[0][0] = box[0];
  inputs[0][1] = box[1];
  inputs[1].push_back(box[0]);
  for (int i = 2; i < box.rank(); ++i) inputs[1].push_back(box[i]);
  inputs[1].push_back({0, box.rank() - 2});
  return OkStatus();
}

// ---- AffineGrid: theta [N, r, r + 1], size (N, C, space...) -> [N, space..., r] -----------------

// Returns 2 or 3, from theta or from size; -1 if neither is known.
Result<int> AffineSpace(const Type& theta, const std::optional<std::vector<int64_t>>& size) {
  int64_t space = theta.rank_known ? theta.dims[1] : kUnknownDim;
  if (size) {
    if (size->size() != 4 && size->size() != 5)
      return InvalidModel("size has ", size->size(), " entries, must have 4 or 5");
    MSRT_ASSIGN_OR_RETURN(space, SameDim(space, std::ssize(*size) - 2,
                                         "the rows of theta and the spatial axes of size"));
  }
  if (!IsKnown(space) && !size) return -1;
  if (space != 2 && space != 3)
    return InvalidModel("theta and size are for ", space, " spatial axes, must be for 2 or 3");
  return static_cast<int>(space);
}

Status InferAffineGrid(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckListAttrOrInput(c.op(), "size", 1, true));
  MSRT_RETURN_IF_ERROR(CheckRank(c, 0, 3));
  const Type& theta = c.input(0);
  const auto size = IntsAttrOrInput(c.op(), "size", 1);
  MSRT_ASSIGN_OR_RETURN(const int space, AffineSpace(theta, size));
  if (space < 0) {
    c.SetOutput(0, Type::UnrankedTensor(theta.dtype));
    return OkStatus();
  }
  Dims out = Dims::Filled(space + 2, kUnknownDim);
  out[space + 1] = space;
  if (theta.rank_known) {
    MSRT_RETURN_IF_ERROR(SameDim(theta.dims[2], space + 1, "the columns of theta").status());
    out[0] = theta.dims[0];
  }
  if (size) {
    for (int64_t s : *size) {
      if (s < 0 || s > kMaxExtent)
        return InvalidModel("size = ", *size, ": each must be at least 0");
    }
    MSRT_ASSIGN_OR_RETURN(out[0], SameDim(out[0], (*size)[0], "the batches of theta and size"));
    for (int i = 0; i < space; ++i) out[1 + i] = (*size)[static_cast<size_t>(i) + 2];
  }
  c.SetOutput(0, theta.dtype, out);
  return OkStatus();
}

Status ResolveAffineGrid(const OpView& op, ResolvedSpace* space) {
  const Dims& out = op.output(0).dims;
  if (!IntsAttrOrInput(op, "size", 1)) return Unsupported("cannot be cut before its size is known");
  for (int i = 0; i < out.rank() - 1; ++i) {
    space->axes.Add(AxisKind::kParallel, out[i]);
    space->outputs[0].dims[static_cast<size_t>(i)] = DimMap::Same(i, out[i]);
  }
  space->inputs[0].dims[0] = DimMap::Same(0, op.input(0).dims[0]);
  DropInputs(1, space);
  return OkStatus();
}

// A piece keeps positions in the whole grid.
Status LocalizeAffineGrid(const OpView& op, const Box& box, std::span<const Box>,
                          std::span<const Box>, AttrList* attrs) {
  const std::vector<int64_t> size = *IntsAttrOrInput(op, "size", 1);
  const auto old_begin = op.Ints("piece_begin"), old_whole = op.Ints("whole_size");
  std::vector<int64_t> piece = size, begin, whole;
  piece[0] = box[0].size();
  for (int i = 1; i < box.rank(); ++i) {
    const auto axis = static_cast<size_t>(i) - 1;
    piece[axis + 2] = box[i].size();
    begin.push_back(box[i].begin + (old_begin.empty() ? 0 : old_begin[axis]));
    whole.push_back(old_whole.empty() ? size[axis + 2] : old_whole[axis]);
  }
  attrs->Set("size", piece);
  attrs->Set("piece_begin", begin);
  attrs->Set("whole_size", whole);
  return OkStatus();
}

// ---- RoiAlign: X [N, C, H, W], rois [R, 4], batch_indices [R] -> [R, C, height, width] ----------

Status InferRoiAlign(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckRank(c, 0, 4));
  MSRT_RETURN_IF_ERROR(CheckRank(c, 1, 2));
  MSRT_RETURN_IF_ERROR(CheckRank(c, 2, 1));
  const Type &x = c.input(0), &rois = c.input(1), &batch = c.input(2);
  Dims out{kUnknownDim, x.rank_known ? x.dims[1] : kUnknownDim, c.op().Int("output_height"),
           c.op().Int("output_width")};
  if (rois.rank_known) {
    MSRT_RETURN_IF_ERROR(SameDim(rois.dims[1], 4, "the numbers of a region").status());
    out[0] = rois.dims[0];
  }
  if (batch.rank_known) {
    MSRT_ASSIGN_OR_RETURN(out[0],
                          SameDim(out[0], batch.dims[0], "the regions and their batch_indices"));
  }
  c.SetOutput(0, x.dtype, out);
  return OkStatus();
}

// Ten operations for each sample. If their number depends on the data, a region is assumed to cover
// the image with one sample for each pixel.
Cost CostRoiAlign(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  const Dims &x = op.input(0).dims, &out = op.output(0).dims;
  const auto ratio = static_cast<double>(op.Int("sampling_ratio"));
  const double bins = static_cast<double>(out[2]) * static_cast<double>(out[3]),
               pixels = static_cast<double>(x[2]) * static_cast<double>(x[3]);
  cost.flops = 10 * static_cast<double>(out[0]) * static_cast<double>(out[1]) *
               (ratio > 0 ? bins * ratio * ratio : std::max(bins, pixels));
  return cost;
}

// Axes: regions and channels; a region may be anywhere in any image.
Status RoiAlignAxes(const OpView& op, IterationSpace* space) {
  space->Add(AxisKind::kParallel, op.output(0).dims[0]);
  space->Add(AxisKind::kParallel, op.output(0).dims[1]);
  return OkStatus();
}

Status RoiAlignOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  WholeOperands(op, inputs);
  inputs[0][1] = box[1];
  inputs[1][0] = box[0];
  inputs[2][0] = box[0];
  return OkStatus();
}

// ---- entries ------------------------------------------------------------------------------------

constexpr SpaceDef kGridSampleSpace{
    .axes = ParallelOutputAxes, .operands = GridSampleOperands, .results = OutputIsBox};
constexpr SpaceDef kAffineGridSpace{.localize = LocalizeAffineGrid, .resolve = ResolveAffineGrid};
constexpr SpaceDef kRoiAlignSpace{
    .axes = RoiAlignAxes, .operands = RoiAlignOperands, .results = OutputBeginsWithBox};

constexpr std::string_view kGridModes[] = {"linear", "nearest", "cubic"},
                           kPaddings[] = {"zeros", "border", "reflection"};
constexpr std::string_view kPools[] = {"avg", "max"},
                           kTransforms[] = {"half_pixel", "output_half_pixel"};
constexpr AttrDef kAlignCorners{.name = "align_corners", .min_int = 0, .max_int = 1};
constexpr AttrDef kGridSampleAttrs[] = {
    {.name = "mode", .kind = AttrKind::kString, .default_string = "linear", .choices = kGridModes},
    {.name = "padding_mode",
     .kind = AttrKind::kString,
     .default_string = "zeros",
     .choices = kPaddings},
    kAlignCorners,
};
constexpr AttrDef kAffineGridAttrs[] = {
    kAlignCorners,
    {.name = "size", .kind = AttrKind::kInts, .min_int = 0, .max_int = kMaxExtent, .max_count = 5},
    {.name = "piece_begin", .kind = AttrKind::kInts, .min_int = 0, .max_count = 3, .local = true},
    {.name = "whole_size", .kind = AttrKind::kInts, .min_int = 0, .max_count = 3, .local = true},
};
constexpr AttrDef kRoiAlignAttrs[] = {
    {.name = "mode", .kind = AttrKind::kString, .default_string = "avg", .choices = kPools},
    {.name = "coordinate_transformation_mode",
     .kind = AttrKind::kString,
     .default_string = "half_pixel",
     .choices = kTransforms},
    {.name = "output_height", .default_int = 1, .min_int = 1, .max_int = kMaxExtent},
    {.name = "output_width", .default_int = 1, .min_int = 1, .max_int = kMaxExtent},
    {.name = "sampling_ratio", .min_int = 0, .max_int = 1 << 12},
    {.name = "spatial_scale", .kind = AttrKind::kFloat, .default_float = 1},
};

constexpr ParamDef kGridSampleInputs[] = {{"X", kNumberTypes}, {"grid", kFloatTypes}};
constexpr ParamDef kAffineGridInputs[] = {{"theta", kFloatTypes},
                                          {"size", kIndexTypes, ParamDef::kOptional}};
constexpr ParamDef kRoiAlignInputs[] = {{"X", kFloatTypes, ParamDef::kRequired, 1},
                                        {"rois", kFloatTypes, ParamDef::kRequired, 1},
                                        {"batch_indices", kIndexTypes}};

constexpr OpDef kSamplingOps[] = {
    {.name = "GridSample",
     .attrs = kGridSampleAttrs,
     .inputs = kGridSampleInputs,
     .infer = InferGridSample,
     .grad = GradGridSample,
     .space = &kGridSampleSpace,
     .cost = CostGridSample},
    {.name = "AffineGrid",
     .attrs = kAffineGridAttrs,
     .inputs = kAffineGridInputs,
     .infer = InferAffineGrid,
     .grad = GradAffineGrid,
     .space = &kAffineGridSpace},
    {.name = "RoiAlign",
     .attrs = kRoiAlignAttrs,
     .inputs = kRoiAlignInputs,
     .infer = InferRoiAlign,
     .grad = GradRoiAlign,
     .space = &kRoiAlignSpace,
     .cost = CostRoiAlign},
};

}  // namespace

std::span<const OpDef> SamplingOps() { return kSamplingOps; }

}  // namespace msrt
