// Reductions: ops that fold some axes of a tensor into one value (Reduce*), and CumSum, which keeps
// every step of the fold.
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

constexpr DTypeSet kReduceTypes =
    kFloatTypes | DTypeSet{DType::kI32, DType::kI64, DType::kU32, DType::kU64};
constexpr DTypeSet kOrderTypes = kReduceTypes | DTypeSet{DType::kI8, DType::kU8, DType::kBool};

constexpr AttrDef kReduceAttrs[] = {
    {.name = "axes", .kind = AttrKind::kInts, .max_count = kMaxRank},
    {.name = "keepdims", .default_int = 1, .min_int = 0, .max_int = 1},
    {.name = "noop_with_empty_axes", .min_int = 0, .max_int = 1},
};
constexpr AttrDef kMeanAttrs[] = {
    kReduceAttrs[0],
    kReduceAttrs[1],
    kReduceAttrs[2],
    // Of a piece: the number of elements of the whole.
    {.name = "divisor", .min_int = 0, .local = true},
};
constexpr ParamDef kReduceInputs[] = {
    {.name = "data", .types = kReduceTypes},
    {.name = "axes", .types = kIndexTypes, .kind = ParamDef::kOptional}};
constexpr ParamDef kOrderInputs[] = {
    {.name = "data", .types = kOrderTypes},
    {.name = "axes", .types = kIndexTypes, .kind = ParamDef::kOptional}};

// ---- reduced axes ---------------------------------------------------------------------

constexpr uint32_t AllAxes(int rank) { return (uint32_t{1} << rank) - 1; }
constexpr bool IsReduced(uint32_t reduced, int axis) { return (reduced >> axis) & 1; }

// Returns one bit for each axis; nullopt if the axes are an input whose value is not known yet.
Result<std::optional<uint32_t>> ReducedAxes(const OpView& op, int rank) {
  const auto axes = IntsAttrOrInput(op, "axes", 1);
  if (!axes) return std::optional<uint32_t>();
  uint32_t reduced = 0;
  for (int64_t a : *axes) {
    MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(a, rank, "axes"));
    if (IsReduced(reduced, axis)) return InvalidModel("axes names axis ", axis, " twice");
    reduced |= uint32_t{1} << axis;
  }
  if (axes->empty() && op.Int("noop_with_empty_axes") == 0) reduced = AllAxes(rank);
  return std::optional(reduced);
}

Type ReducedType(const Type& data, uint32_t reduced, bool keepdims) {
  Dims dims;
  for (int i = 0; i < data.rank(); ++i) {
    if (!IsReduced(reduced, i)) dims.push_back(data.dims[i]);
    else if (keepdims) dims.push_back(1);
  }
  return Type::Tensor(data.dtype, dims);
}

// Returns the type while the axes are an input of unknown value: with keepdims the rank is known,
// without it only if the number of axes is known.
Type TypeForUnknownAxes(const OpView& op, bool keepdims) {
  const Type &data = op.input(0), &axes = op.input(1);
  if (keepdims) {
    Dims dims;
    for (int64_t d : data.dims) dims.push_back(d == 1 ? 1 : kUnknownDim);
    return Type::Tensor(data.dtype, dims);
  }
  const bool count_known =
      axes.rank_known && axes.rank() == 1 && axes.dims[0] > 0 && axes.dims[0] <= data.rank();
  if (!count_known) return Type::UnrankedTensor(data.dtype);
  return Type::Tensor(data.dtype,
                      Dims::Filled(data.rank() - static_cast<int>(axes.dims[0]), kUnknownDim));
}

Status InferReduce(InferContext& c) {
  const OpView& op = c.op();
  MSRT_RETURN_IF_ERROR(RefuseAttrAndInput(op, "axes", 1));
  if (c.has_input(1)) MSRT_RETURN_IF_ERROR(CheckRank(c, 1, 1));
  const Type& data = c.input(0);
  if (!data.rank_known) {
    c.SetOutput(0, Type::UnrankedTensor(data.dtype));
    return OkStatus();
  }
  const bool keepdims = op.Int("keepdims") != 0;
  MSRT_ASSIGN_OR_RETURN(const auto reduced, ReducedAxes(op, data.rank()));
  c.SetOutput(0,
              reduced ? ReducedType(data, *reduced, keepdims) : TypeForUnknownAxes(op, keepdims));
  return OkStatus();
}

Cost CostReduce(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  cost.flops = static_cast<double>(op.input(0).elements());
  return cost;
}

// ---- iteration space: one axis for each axis of the data ----------------------------------------

Result<uint32_t> KnownReducedAxes(const OpView& op) {
  MSRT_ASSIGN_OR_RETURN(const auto reduced, ReducedAxes(op, op.input(0).rank()));
  if (!reduced)
    return Unsupported(
        "axes are an input whose value is not known before the run, so the work cannot be cut");
  return *reduced;
}

// A piece of a mean is its share of it: the sum divided by the elements of the whole. Means of
// integers round, L2 and LogSum do not combine from their results, so their reduced axes stay
// whole.
Monoid MonoidOf(const OpView& node) {
  const std::string_view op = node.op();
  if (op == "ReduceMean" && IsFloat(node.input(0).dtype)) return Monoid::kSum;
  if (op == "ReduceLogSumExp" && IsFloat(node.input(0).dtype)) return Monoid::kLogSumExp;
  if (op == "ReduceSum" || op == "ReduceL1" || op == "ReduceSumSquare") return Monoid::kSum;
  if (op == "ReduceProd") return Monoid::kProduct;
  if (op == "ReduceMax") return Monoid::kMax;
  if (op == "ReduceMin") return Monoid::kMin;
  return Monoid::kNone;
}

Status ResolveReduce(const OpView& op, ResolvedSpace* space) {
  MSRT_ASSIGN_OR_RETURN(const uint32_t reduced, KnownReducedAxes(op));
  const Monoid monoid = MonoidOf(op);
  const bool keepdims = op.Int("keepdims") != 0;
  const Dims& dims = op.input(0).dims;
  space->inputs[0] = TensorMap::Same(dims);
  std::vector<DimMap>& out = space->outputs[0].dims;
  out.clear();
  for (int i = 0; i < dims.rank(); ++i) {
    if (!IsReduced(reduced, i)) {
      space->axes.Add(AxisKind::kParallel, dims[i]);
      out.push_back(DimMap::Same(i, dims[i]));
      continue;
    }
    if (monoid != Monoid::kNone) space->axes.Add(AxisKind::kReduce, dims[i], monoid);
    else space->axes.Add(AxisKind::kWhole, dims[i]);
    if (keepdims) out.push_back(DimMap::Whole(1));
  }
  return OkStatus();
}

Status LocalizeMean(const OpView& op, const Box& box, std::span<const Box>, std::span<const Box>,
                    AttrList* attrs) {
  MSRT_ASSIGN_OR_RETURN(const uint32_t reduced, KnownReducedAxes(op));
  const Dims& dims = op.input(0).dims;
  bool whole = true;
  int64_t elements = 1;
  for (int i = 0; i < dims.rank(); ++i) {
    if (!IsReduced(reduced, i)) continue;
    whole = whole && box[i].size() == dims[i];
    elements *= dims[i];
  }
  if (!whole && !op.Has("divisor")) attrs->Set("divisor", elements);
  return OkStatus();
}

constexpr SpaceDef kReduceSpace{.resolve = ResolveReduce};
constexpr SpaceDef kMeanSpace{.localize = LocalizeMean, .resolve = ResolveReduce};

// ---- CumSum -------------------------------------------------------------------------------------

constexpr AttrDef kCumSumAttrs[] = {
    {.name = "axis"},
    {.name = "exclusive", .min_int = 0, .max_int = 1},
    {.name = "reverse", .min_int = 0, .max_int = 1},
};
constexpr ParamDef kCumSumInputs[] = {
    {.name = "x", .types = kReduceTypes},
    {.name = "axis", .types = kIndexTypes, .kind = ParamDef::kOptional}};

Status InferCumSum(InferContext& c) {
  MSRT_ASSIGN_OR_RETURN(const auto axis, IntAttrOrInput(c.op(), "axis", 1));
  if (axis && c.input(0).rank_known)
    MSRT_RETURN_IF_ERROR(NormalizeAxis(*axis, c.input(0).rank()).status());
  return InferSameAsFirst(c);
}

Status ResolveCumSum(const OpView& op, ResolvedSpace* space) {
  MSRT_ASSIGN_OR_RETURN(const auto given, IntAttrOrInput(op, "axis", 1));
  if (!given)
    return Unsupported(
        "axis is an input whose value is not known before the run, so the work cannot be cut");
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(*given, op.input(0).rank()));
  ResolveByInput(
      op, [&](int d) { return d == axis; }, space);
  space->outputs[0] = TensorMap::Same(op.output(0).dims);
  return OkStatus();
}

constexpr SpaceDef kCumSumSpace{.resolve = ResolveCumSum};

// ---- the entries --------------------------------------------------------------------------------

constexpr OpDef Reduction(std::string_view name, GradFn grad,
                          std::span<const ParamDef> inputs = kReduceInputs) {
  return {.name = name,
          .attrs = kReduceAttrs,
          .inputs = inputs,
          .infer = InferReduce,
          .grad = grad,
          .space = &kReduceSpace,
          .cost = CostReduce};
}

constexpr OpDef kReduceOps[] = {
    Reduction("ReduceSum", GradReduceSum),
    {.name = "ReduceMean",
     .attrs = kMeanAttrs,
     .inputs = kReduceInputs,
     .infer = InferReduce,
     .grad = GradReduceMean,
     .space = &kMeanSpace,
     .cost = CostReduce},
    Reduction("ReduceMax", GradReduceMax, kOrderInputs),
    Reduction("ReduceMin", GradReduceMax, kOrderInputs),
    Reduction("ReduceProd", GradReduceProd),
    Reduction("ReduceL1", GradReduceL1),
    Reduction("ReduceL2", GradReduceL2),
    Reduction("ReduceLogSum", GradReduceLogSum),
    Reduction("ReduceLogSumExp", GradReduceLogSumExp),
    Reduction("ReduceSumSquare", GradReduceSumSquare),
    {.name = "CumSum",
     .attrs = kCumSumAttrs,
     .inputs = kCumSumInputs,
     .infer = InferCumSum,
     .grad = GradCumSum,
     .space = &kCumSumSpace},
};

}  // namespace

std::span<const OpDef> ReduceOps() { return kReduceOps; }

}  // namespace msrt
