// Gradients of reductions, and msrt.SumTo, the gradient of broadcasting where dims are open.
#include "ops/families.h"
#include "ops/grad_builder.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

// The value of a reduction, or its gradient, with the reduced axes as dims of 1.
ValueId WithReducedDims(GradBuilder& g, ValueId reduced) {
  if (g.op().Int("keepdims") != 0) return reduced;
  const Type x = g.type(g.input(0));
  if (!x.rank_known) {
    g.Fail(Unsupported("the rank of the input is not known; declare it"));
    return kNoValue;
  }
  const auto axes = IntsAttrOrInput(g.op(), "axes", 1);
  if (!axes) return g.Add("Unsqueeze", {reduced, g.input(1)});
  std::vector<int64_t> list = *axes;
  if (list.empty()) {
    if (g.op().Int("noop_with_empty_axes") != 0) return reduced;
    for (int d = 0; d < x.rank(); ++d) list.push_back(d);
  }
  return g.Add("Unsqueeze", {reduced}, {{"axes", std::move(list)}});
}

// The sum over the axes of the node, which stay as dims of 1.
ValueId SumOverSameAxes(GradBuilder& g, ValueId v) {
  AttrList attrs = g.op().attrs();
  attrs.Set("keepdims", int64_t{1});
  std::vector<ValueId> inputs{v};
  if (g.has_input(1)) inputs.push_back(g.input(1));
  return g.Add("ReduceSum", std::move(inputs), std::move(attrs));
}

}  // namespace

Status GradReduceSum(GradBuilder& g) {
  g.Set(0, g.ExpandTo(WithReducedDims(g, g.grad()), g.input(0)));
  return OkStatus();
}

Status GradReduceMean(GradBuilder& g) {
  const Type x = g.type(g.input(0)), y = g.type(g.output(0));
  ValueId share;
  if (x.concrete() && y.concrete()) {
    const int64_t count = y.elements() == 0 ? 1 : x.elements() / y.elements();
    share = g.Times(g.grad(), 1 / static_cast<double>(count));
  } else {
    const auto elements = [&](ValueId v) { return g.CastTo(g.Add("Size", {v}), g.grad()); };
    share = g.Times(g.grad(), g.Over(elements(g.output(0)), elements(g.input(0))));
  }
  g.Set(0, g.ExpandTo(WithReducedDims(g, share), g.input(0)));
  return OkStatus();
}

// Elements that are equally large share the gradient.
Status GradReduceMax(GradBuilder& g) {
  const ValueId chosen = g.Add("Equal", {g.input(0), WithReducedDims(g, g.output(0))});
  const ValueId count = SumOverSameAxes(g, g.CastTo(chosen, g.input(0)));
  const ValueId share = g.Over(WithReducedDims(g, g.grad()), count);
  g.Set(0, g.Add("Where", {chosen, share, g.Scalar(0, share)}));
  return OkStatus();
}

namespace {

// For a matrix, the product of the elements before each element of its row, by doubling the number
// of factors. No division, so it is exact where elements are zero, and so are its derivatives.
ValueId ProductsBefore(GradBuilder& g, ValueId rows, int64_t columns, bool after) {
  const auto shifted = [&](ValueId v, int64_t by) {
    const ValueId part = g.Add("Slice", {v},
                               {{"starts", std::vector<int64_t>{after ? by : 0}},
                                {"ends", std::vector<int64_t>{after ? columns : columns - by}},
                                {"axes", std::vector<int64_t>{1}}});
    const std::vector<int64_t> pads =
        after ? std::vector<int64_t>{0, 0, 0, by} : std::vector<int64_t>{0, by, 0, 0};
    return g.Add("Pad", {part}, {{"pads", pads}, {"value", 1.0}});
  };
  ValueId product = shifted(rows, 1);
  for (int64_t count = 1; count < columns - 1; count *= 2)
    product = g.Times(product, shifted(product, count));
  return product;
}

}  // namespace

// Each element's slope is the product of the others.
Status GradReduceProd(GradBuilder& g) {
  const Type x = g.type(g.input(0));
  const auto axes = IntsAttrOrInput(g.op(), "axes", 1);
  if (!x.concrete() || !axes)
    return Unsupported("the dims of the input or the axes are not known; declare them");
  if (x.elements() == 0) return OkStatus();
  if (axes->empty() && g.op().Int("noop_with_empty_axes") != 0) {
    g.Set(0, g.grad());
    return OkStatus();
  }
  std::vector<bool> reduced(x.dims.size(), axes->empty());
  for (int64_t a : *axes) reduced[static_cast<size_t>(a < 0 ? a + x.rank() : a)] = true;
  std::vector<int64_t> perm;
  int64_t columns = 1;
  for (const bool second : {false, true}) {
    for (int d = 0; d < x.rank(); ++d) {
      if (reduced[static_cast<size_t>(d)] != second) continue;
      perm.push_back(d);
      if (second) columns *= x.dims[d];
    }
  }
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  const ValueId moved = g.Add("Transpose", {g.input(0)}, {{"perm", perm}});
  const ValueId rows = g.Add("Reshape", {moved}, {{"shape", std::vector<int64_t>{-1, columns}}});
  const ValueId others = g.Times(ProductsBefore(g, rows, columns, /*after=*/false),
                                 ProductsBefore(g, rows, columns, /*after=*/true));
  const ValueId slope =
      g.Add("Transpose", {g.ReshapeTo(others, moved)}, {{"perm", std::move(inverse)}});
  g.Set(0, g.Times(slope, WithReducedDims(g, g.grad())));
  return OkStatus();
}

Status GradReduceL1(GradBuilder& g) {
  g.Set(0, g.Times(g.Add("Sign", {g.input(0)}), WithReducedDims(g, g.grad())));
  return OkStatus();
}

// Zero where the norm is zero, as all elements then are.
Status GradReduceL2(GradBuilder& g) {
  const ValueId norm = g.output(0);
  const ValueId divisor =
      g.Add("Where", {g.Add("Equal", {norm, g.Scalar(0, norm)}), g.Scalar(1, norm), norm});
  g.Set(0, g.Times(g.input(0), WithReducedDims(g, g.Over(g.grad(), divisor))));
  return OkStatus();
}

Status GradReduceLogSum(GradBuilder& g) {
  const ValueId by_sum = g.Over(g.grad(), g.Add("Exp", {g.output(0)}));
  g.Set(0, g.ExpandTo(WithReducedDims(g, by_sum), g.input(0)));
  return OkStatus();
}

Status GradReduceLogSumExp(GradBuilder& g) {
  const ValueId share = g.Add("Exp", {g.Minus(g.input(0), WithReducedDims(g, g.output(0)))});
  g.Set(0, g.Times(share, WithReducedDims(g, g.grad())));
  return OkStatus();
}

Status GradReduceSumSquare(GradBuilder& g) {
  g.Set(0, g.Times(g.input(0), WithReducedDims(g, g.Times(g.grad(), 2))));
  return OkStatus();
}

Status GradCumSum(GradBuilder& g) {
  AttrList attrs = g.op().attrs();
  attrs.Set("reverse", int64_t{1} - g.op().Int("reverse"));
  std::vector<ValueId> inputs{g.grad()};
  if (g.has_input(1)) inputs.push_back(g.input(1));
  g.Set(0, g.Add("CumSum", std::move(inputs), std::move(attrs)));
  return OkStatus();
}

// ---- SumTo --------------------------------------------------------------------------------------

namespace {

Status InferSumTo(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckListAttrOrInput(c.op(), "shape", 1, true));
  const Type& in = c.input(0);
  const auto shape = IntsAttrOrInput(c.op(), "shape", 1);
  if (shape) {
    if (shape->size() > kMaxRank)
      return InvalidModel("shape has ", shape->size(), " dims, at most ", kMaxRank, " are allowed");
    for (size_t i = 0; i < shape->size(); ++i) {
      if ((*shape)[i] < 0)
        return InvalidModel("shape[", i, "] = ", (*shape)[i], ", must be at least 0");
    }
    if (in.rank_known) MSRT_RETURN_IF_ERROR(CheckBroadcastsTo(Dims(*shape), in.dims, "shape"));
    c.SetOutput(0, in.dtype, Dims(*shape));
    return OkStatus();
  }
  const Type& list = c.input(1);
  if (!list.rank_known || list.rank() != 1 || !IsKnown(list.dims[0])) {
    c.SetOutput(0, Type::UnrankedTensor(in.dtype));
    return OkStatus();
  }
  const int64_t rank = list.dims[0];
  if (rank > kMaxRank || (in.rank_known && rank > in.rank())) {
    return InvalidModel("shape has ", rank, " elements, must have at most the rank of the value, ",
                        in.rank_known ? in.rank() : kMaxRank);
  }
  c.SetOutput(0, in.dtype, Dims::Filled(static_cast<int>(rank), kUnknownDim));
  return OkStatus();
}

// One axis for each axis of the value: those that the output lacks, or has as 1, are summed.
Status ResolveSumTo(const OpView& op, ResolvedSpace* space) {
  const Dims &in = op.input(0).dims, &out = op.output(0).dims;
  const int extra = in.rank() - out.rank();
  space->inputs[0] = TensorMap::Same(in);
  for (int d = 0; d < in.rank(); ++d) {
    if (d >= extra && out[d - extra] == in[d]) {
      space->axes.Add(AxisKind::kParallel, in[d]);
      space->outputs[0].dims[static_cast<size_t>(d - extra)] = DimMap::Same(d, in[d]);
    } else {
      space->axes.Add(AxisKind::kReduce, in[d], Monoid::kSum);
    }
  }
  DropInputs(1, space);
  return OkStatus();
}

Status LocalizeSumTo(const OpView&, const Box&, std::span<const Box>, std::span<const Box> outputs,
                     AttrList* attrs) {
  attrs->Set("shape", ExtentsOf(outputs[0]));
  return OkStatus();
}

Cost CostSumTo(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  cost.flops = static_cast<double>(op.input(0).elements());
  return cost;
}

Status GradSumTo(GradBuilder& g) {
  g.Set(0, g.ExpandTo(g.grad(), g.input(0)));
  return OkStatus();
}

constexpr SpaceDef kSumToSpace{.localize = LocalizeSumTo, .resolve = ResolveSumTo};
constexpr AttrDef kSumToAttrs[] = {
    {.name = "shape", .kind = AttrKind::kInts, .min_int = 0, .max_count = kMaxRank}};
constexpr ParamDef kSumToInputs[] = {{"value", kFloatTypes},
                                     {"shape", kIndexTypes, ParamDef::kOptional}};

constexpr OpDef kReduceGradOps[] = {
    // The sum over the axes along which a tensor of `shape` broadcasts to the value.
    {.name = "SumTo",
     .domain = "msrt",
     .version = 1,
     .attrs = kSumToAttrs,
     .inputs = kSumToInputs,
     .infer = InferSumTo,
     .grad = GradSumTo,
     .space = &kSumToSpace,
     .cost = CostSumTo},
};

}  // namespace

std::span<const OpDef> ReduceGradOps() { return kReduceGradOps; }

}  // namespace msrt
