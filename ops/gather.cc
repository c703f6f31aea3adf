// Ops that move elements to or from positions given by indices: Gather, GatherElements, GatherND,
// ScatterElements, ScatterND, OneHot. Indices may be negative (counted from the end); only the
// kernel can check their range.
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"

namespace msrt {
namespace {

constexpr DTypeSet kGatheredTypes = kComputeTypes | kF8Types;  // 4-bit elements are not addressable

// Reads as many bytes of the data as it writes, regardless of the size of the data.
Cost CostGather(const OpView& op) {
  Cost cost;
  cost.bytes_written = static_cast<double>(op.output(0).bytes());
  cost.bytes_read = cost.bytes_written + static_cast<double>(op.input(1).bytes());
  cost.flops = static_cast<double>(op.output(0).elements());
  return cost;
}

Status SetUnranked(InferContext& c, DType dtype) {
  c.SetOutput(0, Type::UnrankedTensor(dtype));
  return OkStatus();
}

Status CheckOutputRank(int rank) {
  if (rank <= kMaxRank) return OkStatus();
  return Unsupported("the output would have rank ", rank, ", at most ", kMaxRank, " is supported");
}

// For ops whose space is the output: one parallel axis for each axis of it.
Status OutputAxes(const OpView& op, IterationSpace* space) {
  for (int64_t d : op.output(0).dims) space->Add(AxisKind::kParallel, d);
  return OkStatus();
}

Status SameBoxResults(const OpView&, const Box& box, std::span<Box> outputs) {
  outputs[0] = box;
  return OkStatus();
}

void AppendAxes(Box* to, const Box& from, int begin, int end) {
  for (int i = begin; i < end; ++i) to->push_back(from[i]);
}

void AppendWhole(Box* to, const Dims& dims, int begin, int end) {
  for (int i = begin; i < end; ++i) to->push_back({0, dims[i]});
}

// ---- Gather: data[..., indices, ...] ------------------------------------------------------------

constexpr AttrDef kAxisAttrs[] = {{.name = "axis"}};
constexpr ParamDef kGatherInputs[] = {{.name = "data", .types = kGatheredTypes},
                                      {.name = "indices", .types = kIndexTypes}};

Status InferGather(InferContext& c) {
  const Type &data = c.input(0), &indices = c.input(1);
  if (!data.rank_known) return SetUnranked(c, data.dtype);
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(c.op().Int("axis"), data.rank()));
  if (!indices.rank_known) return SetUnranked(c, data.dtype);
  MSRT_RETURN_IF_ERROR(CheckOutputRank(data.rank() - 1 + indices.rank()));
  Dims dims = data.dims;
  dims.erase(axis);
  for (int i = 0; i < indices.rank(); ++i) dims.insert(axis + i, indices.dims[i]);
  c.SetOutput(0, data.dtype, dims);
  return OkStatus();
}

Status GatherOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  const Dims& data = op.input(0).dims;
  const int indices_rank = op.input(1).rank();
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(op.Int("axis"), data.rank()));
  AppendAxes(&inputs[0], box, 0, axis);
  inputs[0].push_back({0, data[axis]});
  AppendAxes(&inputs[0], box, axis + indices_rank, box.rank());
  AppendAxes(&inputs[1], box, axis, axis + indices_rank);
  return OkStatus();
}

constexpr SpaceDef kGatherSpace{
    .axes = OutputAxes, .operands = GatherOperands, .results = SameBoxResults};

// ---- GatherElements: every output element has an index of its own -------------------------------

// GatherElements and ScatterElements: except along the axis, positions are those of the data, so
// indices must not be larger there.
Status CheckElementIndices(const Type& data, const Type& indices, int axis) {
  if (data.rank() != indices.rank()) {
    return InvalidModel("indices ", indices.dims, " must have the rank of data ", data.dims);
  }
  for (int i = 0; i < data.rank(); ++i) {
    if (i != axis && IsKnown(data.dims[i]) && indices.dims[i] > data.dims[i]) {
      return InvalidModel("indices ", indices.dims, " reach beyond data ", data.dims, " in dim ", i,
                          "; only dim ", axis, ", the axis, may");
    }
  }
  return OkStatus();
}

Status InferGatherElements(InferContext& c) {
  const Type &data = c.input(0), &indices = c.input(1);
  if (!data.rank_known && !indices.rank_known) return SetUnranked(c, data.dtype);
  const int rank = data.rank_known ? data.rank() : indices.rank();
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(c.op().Int("axis"), rank));
  if (data.rank_known && indices.rank_known)
    MSRT_RETURN_IF_ERROR(CheckElementIndices(data, indices, axis));
  c.SetOutput(0, data.dtype, indices.rank_known ? indices.dims : Dims::Filled(rank, kUnknownDim));
  return OkStatus();
}

Status GatherElementsOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  const Dims& data = op.input(0).dims;
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(op.Int("axis"), data.rank()));
  inputs[0] = box;
  inputs[0][axis] = {0, data[axis]};
  inputs[1] = box;
  return OkStatus();
}

constexpr SpaceDef kGatherElementsSpace{
    .axes = OutputAxes, .operands = GatherElementsOperands, .results = SameBoxResults};

// ---- GatherND: the last axis of indices holds tuples that name slices of the data ---------------

constexpr AttrDef kGatherNDAttrs[] = {{.name = "batch_dims", .min_int = 0, .max_int = kMaxRank}};

Status CheckTupleLength(int64_t length, const Dims& indices, int indexable) {
  if (length >= 1 && length <= indexable) return OkStatus();
  return InvalidModel("the last dim of indices ", indices, " is ", length, ", must be in [1, ",
                      indexable, "], an index for each of so many dims of data");
}

Status InferGatherND(InferContext& c) {
  const Type &data = c.input(0), &indices = c.input(1);
  const int batch_dims = static_cast<int>(c.op().Int("batch_dims"));
  for (size_t i = 0; i < 2; ++i) {
    if (!c.input(i).rank_known || batch_dims < c.input(i).rank()) continue;
    return InvalidModel("batch_dims = ", batch_dims, ", must be less than the rank of input ", i,
                        " ", c.dims(i));
  }
  if (!data.rank_known || !indices.rank_known || !IsKnown(indices.dims.back()))
    return SetUnranked(c, data.dtype);
  MSRT_RETURN_IF_ERROR(
      CheckTupleLength(indices.dims.back(), indices.dims, data.rank() - batch_dims));
  const int sliced_from = batch_dims + static_cast<int>(indices.dims.back());
  MSRT_RETURN_IF_ERROR(CheckOutputRank(indices.rank() - 1 + data.rank() - sliced_from));
  Dims dims = indices.dims;
  dims.erase(dims.rank() - 1);
  for (int i = 0; i < batch_dims; ++i) {
    MSRT_ASSIGN_OR_RETURN(dims[i], SameDim(data.dims[i], indices.dims[i],
                                           StrCat("batch dim ", i, " of data and indices")));
  }
  for (int i = sliced_from; i < data.rank(); ++i) dims.push_back(data.dims[i]);
  c.SetOutput(0, data.dtype, dims);
  return OkStatus();
}

Status GatherNDOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  const Dims &data = op.input(0).dims, &indices = op.input(1).dims;
  const int batch_dims = static_cast<int>(op.Int("batch_dims")),
            sliced_from = batch_dims + static_cast<int>(indices.back());
  AppendAxes(&inputs[0], box, 0, batch_dims);
  AppendWhole(&inputs[0], data, batch_dims, sliced_from);
  AppendAxes(&inputs[0], box, indices.rank() - 1, box.rank());
  AppendAxes(&inputs[1], box, 0, indices.rank() - 1);
  inputs[1].push_back({0, indices.back()});
  return OkStatus();
}

constexpr SpaceDef kGatherNDSpace{
    .axes = OutputAxes, .operands = GatherNDOperands, .results = SameBoxResults};

// ---- ScatterElements, ScatterND -----------------------------------------------------------------

// Data with updates written or folded in. Several updates of the same element are applied in
// row-major order of the indices.
constexpr std::string_view kScatterReductions[] = {"none", "add", "mul", "max", "min"};
constexpr AttrDef kReductionAttr{.name = "reduction",
                                 .kind = AttrKind::kString,
                                 .default_string = "none",
                                 .choices = kScatterReductions};
constexpr AttrDef kScatterElementsAttrs[] = {{.name = "axis"}, kReductionAttr};
constexpr AttrDef kScatterNDAttrs[] = {kReductionAttr};
constexpr ParamDef kScatterInputs[] = {{.name = "data", .types = kGatheredTypes, .group = 1},
                                       {.name = "indices", .types = kIndexTypes},
                                       {.name = "updates", .types = kGatheredTypes, .group = 1}};

Status CheckReduction(const InferContext& c) {
  const std::string_view reduction = c.op().String("reduction");
  if (reduction == "none" || kNumberTypes.Has(c.dtype(0))) return OkStatus();
  return InvalidModel("reduction '", reduction, "' needs numbers, data is ", c.dtype(0));
}

Status InferScatterElements(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckReduction(c));
  const Type &data = c.input(0), &indices = c.input(1), &updates = c.input(2);
  if (indices.rank_known && updates.rank_known) {
    MSRT_RETURN_IF_ERROR(CheckRank(c, 2, indices.rank()));
    for (int i = 0; i < indices.rank(); ++i) {
      MSRT_RETURN_IF_ERROR(
          SameDim(indices.dims[i], updates.dims[i], StrCat("dim ", i, " of indices and updates"))
              .status());
    }
  }
  if (data.rank_known) {
    MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(c.op().Int("axis"), data.rank()));
    if (indices.rank_known) MSRT_RETURN_IF_ERROR(CheckElementIndices(data, indices, axis));
  }
  return InferSameAsFirst(c);
}

// The space is the data. Except along the axis an update keeps its position, so indices and updates
// are cut like the data, up to their own extent.
Status ScatterElementsAxes(const OpView& op, IterationSpace* space) {
  const Dims& data = op.input(0).dims;
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(op.Int("axis"), data.rank()));
  for (int i = 0; i < data.rank(); ++i)
    space->Add(i == axis ? AxisKind::kWhole : AxisKind::kParallel, data[i]);
  return OkStatus();
}

Status ScatterElementsOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  const Dims& indices = op.input(1).dims;
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(op.Int("axis"), box.rank()));
  inputs[0] = box;
  for (int i = 0; i < box.rank(); ++i) {
    const Interval needed =
        i == axis ? Interval{0, indices[i]} : Intersect(box[i], {0, indices[i]});
    inputs[1].push_back(needed.empty() ? Interval{0, 0} : needed);
  }
  inputs[2] = inputs[1];
  return OkStatus();
}

constexpr SpaceDef kScatterElementsSpace{
    .axes = ScatterElementsAxes, .operands = ScatterElementsOperands, .results = SameBoxResults};

Status InferScatterND(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckReduction(c));
  const Type &data = c.input(0), &indices = c.input(1), &updates = c.input(2);
  if (data.rank_known && data.rank() == 0)
    return InvalidModel("data is a scalar, must have at least one dim to index");
  if (indices.rank_known && indices.rank() == 0)
    return InvalidModel("indices is a scalar, its last dim must hold the index tuples");
  if (data.rank_known && indices.rank_known && IsKnown(indices.dims.back())) {
    MSRT_RETURN_IF_ERROR(CheckTupleLength(indices.dims.back(), indices.dims, data.rank()));
    const int sliced_from = static_cast<int>(indices.dims.back()),
              slice_rank = data.rank() - sliced_from;
    MSRT_RETURN_IF_ERROR(CheckRank(c, 2, indices.rank() - 1 + slice_rank));
    for (int i = 0; updates.rank_known && i < updates.rank(); ++i) {
      const int slice_dim = i - (indices.rank() - 1);
      const int64_t wanted = slice_dim < 0 ? indices.dims[i] : data.dims[sliced_from + slice_dim];
      MSRT_RETURN_IF_ERROR(
          SameDim(updates.dims[i], wanted, StrCat("dim ", i, " of updates ", updates.dims))
              .status());
    }
  }
  return InferSameAsFirst(c);
}

// The space is the data: the indexed dims stay whole, the slices can be cut.
Status ScatterNDAxes(const OpView& op, IterationSpace* space) {
  const Dims& data = op.input(0).dims;
  for (int i = 0; i < data.rank(); ++i)
    space->Add(i < op.input(1).dims.back() ? AxisKind::kWhole : AxisKind::kParallel, data[i]);
  return OkStatus();
}

Status ScatterNDOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  const Dims& indices = op.input(1).dims;
  inputs[0] = box;
  inputs[1] = Box::Whole(indices);
  AppendWhole(&inputs[2], indices, 0, indices.rank() - 1);
  AppendAxes(&inputs[2], box, static_cast<int>(indices.back()), box.rank());
  return OkStatus();
}

constexpr SpaceDef kScatterNDSpace{
    .axes = ScatterNDAxes, .operands = ScatterNDOperands, .results = SameBoxResults};

// ---- OneHot: an index outside [-depth, depth) makes a row of off values -------------------------

constexpr AttrDef kOneHotAttrs[] = {
    {.name = "axis", .default_int = -1},
    {.name = "depth", .min_int = 0},
    // A piece makes classes [class_begin, class_end) of all `depth`.
    {.name = "class_begin", .min_int = 0, .local = true},
    {.name = "class_end", .min_int = 0, .local = true},
};
constexpr ParamDef kOneHotInputs[] = {
    {.name = "indices", .types = kNumberTypes},
    {.name = "depth", .types = kIndexTypes, .kind = ParamDef::kOptional},
    {.name = "values", .types = kGatheredTypes}};

Result<int> OneHotAxis(const OpView& op) {
  return NormalizeAxis(op.Int("axis"), op.input(0).rank() + 1);
}

Status InferOneHot(InferContext& c) {
  const OpView& op = c.op();
  MSRT_RETURN_IF_ERROR(CheckRank(c, 2, 1));
  if (c.input(2).rank_known)
    MSRT_RETURN_IF_ERROR(SameDim(c.dims(2)[0], 2, "values must be {off, on}: dim 0").status());
  MSRT_ASSIGN_OR_RETURN(const auto depth, IntAttrOrInput(op, "depth", 1));
  if (depth && *depth < 0) return InvalidModel("depth = ", *depth, ", must be at least 0");
  int64_t classes = depth.value_or(kUnknownDim);
  if (op.Has("class_begin") || op.Has("class_end")) {
    const int64_t begin = op.Int("class_begin"), end = op.Int("class_end");
    if (begin > end || (depth && end > *depth))
      return InvalidModel("classes [", begin, ", ", end, ") are not within depth");
    classes = end - begin;
  }
  if (!c.input(0).rank_known) return SetUnranked(c, c.dtype(2));
  MSRT_RETURN_IF_ERROR(CheckOutputRank(c.input(0).rank() + 1));
  MSRT_ASSIGN_OR_RETURN(const int axis, OneHotAxis(op));
  Dims dims = c.dims(0);
  dims.insert(axis, classes);
  c.SetOutput(0, c.dtype(2), dims);
  return OkStatus();
}

Status OneHotOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  MSRT_ASSIGN_OR_RETURN(const int axis, OneHotAxis(op));
  AppendAxes(&inputs[0], box, 0, axis);
  AppendAxes(&inputs[0], box, axis + 1, box.rank());
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (op.has_input(i)) inputs[i] = Box::Whole(op.input(i).dims);
  }
  return OkStatus();
}

Status OneHotLocalize(const OpView& op, const Box& box, std::span<const Box>, std::span<const Box>,
                      AttrList* attrs) {
  MSRT_ASSIGN_OR_RETURN(const int axis, OneHotAxis(op));
  const int64_t begin = op.Int("class_begin");  // not zero if the node is itself a piece
  attrs->Set("class_begin", begin + box[axis].begin);
  attrs->Set("class_end", begin + box[axis].end);
  return OkStatus();
}

constexpr SpaceDef kOneHotSpace{.axes = OutputAxes,
                                .operands = OneHotOperands,
                                .results = SameBoxResults,
                                .localize = OneHotLocalize};

// ---- the entries --------------------------------------------------------------------------------

constexpr OpDef Gathering(std::string_view name, std::span<const AttrDef> attrs, InferFn infer,
                          GradFn grad, const SpaceDef* space) {
  return {.name = name,
          .attrs = attrs,
          .inputs = kGatherInputs,
          .infer = infer,
          .grad = grad,
          .space = space,
          .cost = CostGather};
}
constexpr OpDef Scattering(std::string_view name, std::span<const AttrDef> attrs, InferFn infer,
                           GradFn grad, const SpaceDef* space) {
  return {.name = name,
          .attrs = attrs,
          .inputs = kScatterInputs,
          .infer = infer,
          .grad = grad,
          .space = space};
}

constexpr OpDef kGatherOps[] = {
    Gathering("Gather", kAxisAttrs, InferGather, GradGather, &kGatherSpace),
    Gathering("GatherElements", kAxisAttrs, InferGatherElements, GradGatherElements,
              &kGatherElementsSpace),
    Gathering("GatherND", kGatherNDAttrs, InferGatherND, GradGatherND, &kGatherNDSpace),
    Scattering("ScatterElements", kScatterElementsAttrs, InferScatterElements, GradScatterElements,
               &kScatterElementsSpace),
    Scattering("ScatterND", kScatterNDAttrs, InferScatterND, GradScatterND, &kScatterNDSpace),
    {.name = "OneHot",
     .attrs = kOneHotAttrs,
     .inputs = kOneHotInputs,
     .infer = InferOneHot,
     .grad = GradOneHot,
     .space = &kOneHotSpace},
};

}  // namespace

std::span<const OpDef> GatherOps() { return kGatherOps; }

}  // namespace msrt
