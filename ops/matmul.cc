// Matrix products: MatMul with NumPy's rules, Gemm, and msrt.FusedMatMul, which adds a bias and a
// residual and applies an activation. The iteration space is batch..., rows, columns, depth; a
// vector operand lacks the axis it does not have.
#include "ops/matmul.h"

#include "ops/activation.h"
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

#include <cmath>

namespace msrt {
namespace {

constexpr DTypeSet kProductTypes =
    kFloatTypes | DTypeSet{DType::kI32, DType::kI64, DType::kU32, DType::kU64};

// A' is [batch..., rows, depth], B' is [batch..., depth, columns]. A vector is treated as a matrix
// whose missing dim is 1; that dim is dropped from the product.
struct Product {
  Dims batch;
  int64_t rows = 1, columns = 1, depth = 0;
  bool has_rows = true, has_columns = true;
  bool transpose_a = false, transpose_b = false;

  Dims dims() const {
    Dims d = batch;
    if (has_rows) d.push_back(rows);
    if (has_columns) d.push_back(columns);
    return d;
  }
  int axes() const { return batch.rank() + int{has_rows} + int{has_columns} + 1; }
};

Dims WithoutLastTwo(const Dims& dims) {
  return Dims(std::span<const int64_t>(dims).first(dims.size() - 2));
}

Status CheckOperand(const Dims& dims, bool transposed, std::string_view name) {
  if (dims.rank() == 0)
    return InvalidModel(name, " is a scalar, must have rank 1 or more; use Mul");
  if (dims.rank() == 1 && transposed)
    return InvalidModel(name, " has rank 1, must have rank 2 or more to be transposed");
  return OkStatus();
}

Result<Product> ProductOf(const Dims& a, const Dims& b, bool transpose_a, bool transpose_b) {
  MSRT_RETURN_IF_ERROR(CheckOperand(a, transpose_a, "A"));
  MSRT_RETURN_IF_ERROR(CheckOperand(b, transpose_b, "B"));
  Product p;
  p.transpose_a = transpose_a, p.transpose_b = transpose_b;
  p.has_rows = a.rank() > 1, p.has_columns = b.rank() > 1;
  Dims a_batch, b_batch;
  int64_t a_depth = a.back(), b_depth = b.back();
  if (p.has_rows) {
    a_batch = WithoutLastTwo(a);
    p.rows = a[a.rank() - (transpose_a ? 1 : 2)];
    a_depth = a[a.rank() - (transpose_a ? 2 : 1)];
  }
  if (p.has_columns) {
    b_batch = WithoutLastTwo(b);
    p.columns = b[b.rank() - (transpose_b ? 2 : 1)];
    b_depth = b[b.rank() - (transpose_b ? 1 : 2)];
  }
  MSRT_ASSIGN_OR_RETURN(
      p.depth,
      SameDim(a_depth, b_depth, StrCat("the inner dims of A ", a, " and B ", b, " differ")));
  auto batch = BroadcastDims(a_batch, b_batch);
  if (!batch.ok()) return std::move(batch).status().Within("batch dims of A and B");
  p.batch = *batch;
  return p;
}

// MatMul has no transposes: an absent attribute is 0. Requires ranked inputs.
Result<Product> ProductOf(const OpView& op) {
  return ProductOf(op.input(0).dims, op.input(1).dims, op.Int("transA") != 0,
                   op.Int("transB") != 0);
}

bool Ranked(const InferContext& c, std::initializer_list<size_t> inputs) {
  for (size_t i : inputs) {
    if (c.has_input(i) && !c.input(i).rank_known) return false;
  }
  return true;
}

}  // namespace

Status InferMatMul(InferContext& c) {
  if (!Ranked(c, {0, 1})) {
    c.SetOutput(0, Type::UnrankedTensor(c.dtype(0)));
    return OkStatus();
  }
  MSRT_ASSIGN_OR_RETURN(const Product p, ProductOf(c.op()));
  c.SetOutput(0, c.dtype(0), p.dims());
  return OkStatus();
}

Status InferFusedMatMul(InferContext& c) {
  if (!Ranked(c, {0, 1})) {
    // The residual has exactly the output's shape.
    c.SetOutput(0, c.has_input(3) ? c.input(3) : Type::UnrankedTensor(c.dtype(0)));
    return OkStatus();
  }
  MSRT_ASSIGN_OR_RETURN(const Product p, ProductOf(c.op()));
  Dims dims = p.dims();
  if (c.has_input(2) && c.input(2).rank_known)
    MSRT_RETURN_IF_ERROR(CheckBroadcastsTo(c.dims(2), dims, "bias"));
  if (c.has_input(3) && c.input(3).rank_known) {
    const Dims& z = c.dims(3);
    if (z.rank() != dims.rank())
      return InvalidModel("Z has shape ", z, ", must have the output's shape ", dims);
    for (int i = 0; i < z.rank(); ++i) {
      MSRT_ASSIGN_OR_RETURN(dims[i], SameDim(dims[i], z[i], "Z must have the output's shape"));
    }
  }
  c.SetOutput(0, c.dtype(0), dims);
  return OkStatus();
}

namespace {

// Integers are scaled exactly, so their factor must be a whole number.
Status CheckFactor(const InferContext& c, std::string_view attr) {
  const double factor = c.op().Float(attr);
  if (IsFloat(c.dtype(0)) || (factor == std::trunc(factor) && std::abs(factor) <= 0x1p53))
    return OkStatus();
  return InvalidModel(attr, " = ", factor, ", must be a whole number for elements of type ",
                      c.dtype(0));
}

Status InferGemm(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckRank(c, 0, 2));
  MSRT_RETURN_IF_ERROR(CheckRank(c, 1, 2));
  MSRT_RETURN_IF_ERROR(CheckFactor(c, "alpha"));
  MSRT_RETURN_IF_ERROR(CheckFactor(c, "beta"));
  const Dims unknown = Dims::Filled(2, kUnknownDim);
  const Dims& a = c.input(0).rank_known ? c.dims(0) : unknown;
  const Dims& b = c.input(1).rank_known ? c.dims(1) : unknown;
  MSRT_ASSIGN_OR_RETURN(const Product p,
                        ProductOf(a, b, c.op().Int("transA") != 0, c.op().Int("transB") != 0));
  if (c.has_input(2) && c.input(2).rank_known)
    MSRT_RETURN_IF_ERROR(CheckBroadcastsTo(c.dims(2), p.dims(), "C"));
  c.SetOutput(0, c.dtype(0), p.dims());
  return OkStatus();
}

// Partial sums over the depth may be added up if nothing that is not linear follows. Only the first
// part adds bias and residual; the others are nodes without them.
Status ResolveMatMul(const OpView& op, ResolvedSpace* space) {
  MSRT_ASSIGN_OR_RETURN(const Product p, ProductOf(op));
  const int depth = p.axes() - 1;
  AddAxes(AxisKind::kParallel, p.dims(), &space->axes);
  if (op.String("activation").empty()) space->axes.Add(AxisKind::kReduce, p.depth, Monoid::kSum);
  else space->axes.Add(AxisKind::kWhole, p.depth);

  const auto operand = [&](size_t i, bool transposed, int line, int along_depth) {
    const Dims& dims = op.input(i).dims;
    if (dims.rank() == 1) {
      space->inputs[i] = TensorMap::Same(dims, depth);
      return;
    }
    // Batch dims align at the right with those of the product.
    TensorMap map = TensorMap::Broadcast(WithoutLastTwo(dims), p.batch.rank());
    const int first = transposed ? along_depth : line, second = transposed ? line : along_depth;
    map.dims.push_back(DimMap::Same(first, dims[dims.rank() - 2]));
    map.dims.push_back(DimMap::Same(second, dims[dims.rank() - 1]));
    space->inputs[i] = std::move(map);
  };
  operand(0, p.transpose_a, p.batch.rank(), depth);
  operand(1, !p.transpose_b, depth - 1, depth);
  for (size_t i = 2; i < op.input_count(); ++i) {
    if (!op.has_input(i)) continue;
    space->inputs[i] = TensorMap::Broadcast(op.input(i).dims, depth);
    space->inputs[i].first_of = depth;
    space->inputs[i].optional = true;
  }
  space->outputs[0] = TensorMap::Same(op.output(0).dims);
  return OkStatus();
}

}  // namespace

const SpaceDef kMatMulSpace{.resolve = ResolveMatMul};

Cost MatMulCost(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  const auto p = ProductOf(op);
  if (p.ok())
    cost.flops = 2.0 * static_cast<double>(op.output(0).elements()) * static_cast<double>(p->depth);
  return cost;
}

namespace {

constexpr AttrDef kTransA{.name = "transA", .min_int = 0, .max_int = 1};
constexpr AttrDef kTransB{.name = "transB", .min_int = 0, .max_int = 1};
constexpr AttrDef kAlpha{.name = "alpha", .kind = AttrKind::kFloat, .default_float = 1};
constexpr AttrDef kBeta{.name = "beta", .kind = AttrKind::kFloat, .default_float = 1};

constexpr AttrDef kGemmAttrs[] = {kTransA, kTransB, kAlpha, kBeta};
constexpr AttrDef kFusedAttrs[] = {
    kTransA, kTransB, kAlpha, kActivationAttr, kActivationAlphaAttr, kActivationBetaAttr};

constexpr ParamDef kMatMulInputs[] = {
    {.name = "A", .types = kProductTypes, .group = 1},
    {.name = "B", .types = kProductTypes, .group = 1},
};
constexpr ParamDef kGemmInputs[] = {
    {.name = "A", .types = kProductTypes, .group = 1},
    {.name = "B", .types = kProductTypes, .group = 1},
    {.name = "C", .types = kProductTypes, .kind = ParamDef::kOptional, .group = 1},
};
constexpr ParamDef kFusedInputs[] = {
    {.name = "A", .types = kFloatTypes, .group = 1},
    {.name = "B", .types = kFloatTypes, .group = 1},
    {.name = "bias", .types = kFloatTypes, .kind = ParamDef::kOptional, .group = 1},
    {.name = "Z", .types = kFloatTypes, .kind = ParamDef::kOptional, .group = 1},
};

constexpr OpDef kMatMulOps[] = {
    {.name = "MatMul",
     .inputs = kMatMulInputs,
     .infer = InferMatMul,
     .grad = GradMatMul,
     .space = &kMatMulSpace,
     .cost = MatMulCost},
    {.name = "Gemm",
     .attrs = kGemmAttrs,
     .inputs = kGemmInputs,
     .infer = InferGemm,
     .grad = GradGemm,
     .space = &kMatMulSpace,
     .cost = MatMulCost},
    {.name = "FusedMatMul",
     .domain = "msrt",
     .version = 1,
     .attrs = kFusedAttrs,
     .inputs = kFusedInputs,
     .infer = InferFusedMatMul,
     .grad = GradFusedMatMul,
     .space = &kMatMulSpace,
     .cost = MatMulCost},
};

}  // namespace

std::span<const OpDef> MatMulOps() { return kMatMulOps; }

}  // namespace msrt
