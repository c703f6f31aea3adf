// Ops that return the positions of selected elements along an axis: ArgMax, ArgMin, TopK.
#include <algorithm>

#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

// ---- ArgMax, ArgMin -----------------------------------------------------------------------------

constexpr AttrDef kArgAttrs[] = {
    {.name = "axis"},
    {.name = "keepdims", .default_int = 1, .min_int = 0, .max_int = 1},
    {.name = "select_last_index", .min_int = 0, .max_int = 1},
};
constexpr ParamDef kArgInputs[] = {{.name = "data", .types = kNumberTypes}};

Status InferArg(InferContext& c) {
  const Type& data = c.input(0);
  if (!data.rank_known) {
    c.SetOutput(0, Type::UnrankedTensor(DType::kI64));
    return OkStatus();
  }
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(c.op().Int("axis"), data.rank()));
  Dims dims = data.dims;
  dims.erase(axis);
  const bool has_outputs = std::all_of(dims.begin(), dims.end(), [](int64_t d) { return d > 0; });
  if (data.dims[axis] == 0 && has_outputs)
    return InvalidModel("axis ", axis, " of data ", data.dims, " is empty: nothing can be chosen");
  if (c.op().Int("keepdims") != 0) dims.insert(axis, 1);
  c.SetOutput(0, DType::kI64, dims);
  return OkStatus();
}

Cost CostArg(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  cost.flops = static_cast<double>(op.input(0).elements());
  return cost;
}

// One axis of the space for each axis of the data. The searched axis stays whole: indices of parts
// cannot be combined by a monoid.
Result<int> ResolveSearched(const OpView& op, ResolvedSpace* space) {
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(op.Int("axis"), op.input(0).rank()));
  ResolveByInput(
      op, [&](int d) { return d == axis; }, space);
  return axis;
}

Status ResolveArg(const OpView& op, ResolvedSpace* space) {
  MSRT_ASSIGN_OR_RETURN(const int axis, ResolveSearched(op, space));
  TensorMap& out = space->outputs[0];
  out.dims.clear();
  for (int d = 0; d < op.input(0).rank(); ++d) {
    if (d != axis) out.dims.push_back(DimMap::Same(d, op.input(0).dims[d]));
    else if (op.Int("keepdims") != 0) out.dims.push_back(DimMap::Whole(1));
  }
  return OkStatus();
}

constexpr SpaceDef kArgSpace{.resolve = ResolveArg};

// ---- TopK ---------------------------------------------------------------------------------------

constexpr AttrDef kTopKAttrs[] = {
    {.name = "k", .min_int = 0},
    {.name = "axis", .default_int = -1},
    {.name = "largest", .default_int = 1, .min_int = 0, .max_int = 1},
    {.name = "sorted", .default_int = 1, .min_int = 0, .max_int = 1},
};
constexpr ParamDef kTopKInputs[] = {
    {.name = "x", .types = kNumberTypes},
    {.name = "k", .types = kIndexTypes, .kind = ParamDef::kOptional}};

Status InferTopK(InferContext& c) {
  const Type& x = c.input(0);
  MSRT_ASSIGN_OR_RETURN(const auto k, IntAttrOrInput(c.op(), "k", 1));
  if (k && *k < 0) return InvalidModel("k = ", *k, ", must be at least 0");
  if (!x.rank_known) {
    c.SetOutput(0, Type::UnrankedTensor(x.dtype));
    c.SetOutput(1, Type::UnrankedTensor(DType::kI64));
    return OkStatus();
  }
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(c.op().Int("axis"), x.rank()));
  Dims dims = x.dims;
  if (k && IsKnown(dims[axis]) && *k > dims[axis]) {
    return InvalidModel("k = ", *k, ", must be at most ", dims[axis], ", the extent of axis ", axis,
                        " of ", dims);
  }
  dims[axis] = k.value_or(kUnknownDim);
  c.SetOutput(0, x.dtype, dims);
  c.SetOutput(1, DType::kI64, dims);
  return OkStatus();
}

Status ResolveTopK(const OpView& op, ResolvedSpace* space) {
  MSRT_ASSIGN_OR_RETURN(const int axis, ResolveSearched(op, space));
  for (size_t o = 0; o < op.output_count(); ++o) {
    if (!op.has_output(o)) continue;
    const Dims& dims = op.output(o).dims;
    space->outputs[o] = TensorMap::Same(dims);
    space->outputs[o].dims[static_cast<size_t>(axis)] = DimMap::Whole(dims[axis]);
  }
  return OkStatus();
}

constexpr SpaceDef kTopKSpace{.resolve = ResolveTopK};

constexpr OpDef kSelectOps[] = {
    {.name = "ArgMax",
     .attrs = kArgAttrs,
     .inputs = kArgInputs,
     .infer = InferArg,
     .space = &kArgSpace,
     .cost = CostArg},
    {.name = "ArgMin",
     .attrs = kArgAttrs,
     .inputs = kArgInputs,
     .infer = InferArg,
     .space = &kArgSpace,
     .cost = CostArg},
    {.name = "TopK",
     .attrs = kTopKAttrs,
     .inputs = kTopKInputs,
     .min_outputs = 2,
     .max_outputs = 2,
     .infer = InferTopK,
     .grad = GradTopK,
     .space = &kTopKSpace},
};

}  // namespace

std::span<const OpDef> SelectOps() { return kSelectOps; }

}  // namespace msrt
