// Gradient of Det, and msrt.Inverse, the inverses of a stack of square matrices.
#include "ops/families.h"
#include "ops/grad_builder.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

ValueId TransposedMatrices(GradBuilder& g, ValueId v) {
  std::vector<int64_t> perm;
  for (int d = 0; d < g.type(v).rank(); ++d) perm.push_back(d);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return g.Add("Transpose", {v}, {{"perm", std::move(perm)}});
}

}  // namespace

// det(X) times the transposed inverse of X. Not defined where X is singular.
Status GradDet(GradBuilder& g) {
  if (!g.type(g.input(0)).rank_known)
    return Unsupported("the rank of the input is not known; declare it");
  const ValueId inverse = TransposedMatrices(g, g.AddMsrt("Inverse", {g.input(0)}));
  const ValueId scale = g.Add("Unsqueeze", {g.Times(g.grad(), g.output(0))},
                              {{"axes", std::vector<int64_t>{-2, -1}}});
  g.Set(0, g.Times(inverse, scale));
  return OkStatus();
}

namespace {

Status InferInverse(InferContext& c) {
  const Type& x = c.input(0);
  if (x.rank_known) {
    if (x.rank() < 2)
      return InvalidModel("input 0 has shape ", x.dims, ", must be matrices of rank 2 or more");
    MSRT_RETURN_IF_ERROR(SameDim(x.dims[x.rank() - 2], x.dims[x.rank() - 1],
                                 "the rows and columns of a square matrix")
                             .status());
  }
  return InferSameAsFirst(c);
}

Cost CostInverse(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  cost.flops *= 2 * static_cast<double>(op.input(0).dims.back());
  return cost;
}

// Matrices stay whole.
Status ResolveInverse(const OpView& op, ResolvedSpace* space) {
  const int rank = op.input(0).rank();
  ResolveByInput(
      op, [&](int d) { return d >= rank - 2; }, space);
  space->outputs[0] = TensorMap::Same(op.output(0).dims);
  return OkStatus();
}

// Y = inverse(X): the gradient is -Y^T * dY * Y^T.
Status GradInverse(GradBuilder& g) {
  if (!g.type(g.input(0)).rank_known)
    return Unsupported("the rank of the input is not known; declare it");
  const ValueId transposed = TransposedMatrices(g, g.output(0));
  const ValueId left = g.Add("MatMul", {transposed, g.grad()});
  g.Set(0, g.Negative(g.Add("MatMul", {left, transposed})));
  return OkStatus();
}

constexpr SpaceDef kInverseSpace{.resolve = ResolveInverse};
constexpr ParamDef kInverseInputs[] = {{"X", kFloatTypes}};

constexpr OpDef kDeterminantGradOps[] = {
    {.name = "Inverse",
     .domain = "msrt",
     .version = 1,
     .inputs = kInverseInputs,
     .infer = InferInverse,
     .grad = GradInverse,
     .space = &kInverseSpace,
     .cost = CostInverse},
};

}  // namespace

std::span<const OpDef> DeterminantGradOps() { return kDeterminantGradOps; }

}  // namespace msrt
