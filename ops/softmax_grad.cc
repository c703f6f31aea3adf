// Gradients of Softmax and LogSoftmax: msrt.SoftmaxGrad and msrt.LogSoftmaxGrad, which read the
// gradient and the output once.
#include "ops/families.h"
#include "ops/grad_builder.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {

Status GradSoftmax(GradBuilder& g) {
  g.Set(0, g.AddMsrt("SoftmaxGrad", {g.grad(), g.output(0)}, {{"axis", g.op().Int("axis")}}));
  return OkStatus();
}

Status GradLogSoftmax(GradBuilder& g) {
  g.Set(0, g.AddMsrt("LogSoftmaxGrad", {g.grad(), g.output(0)}, {{"axis", g.op().Int("axis")}}));
  return OkStatus();
}

namespace {

Status InferSoftmaxGrad(InferContext& c) {
  Type type = c.input(0).rank_known ? c.input(0) : c.input(1);
  if (c.input(0).rank_known && c.input(1).rank_known) {
    MSRT_RETURN_IF_ERROR(CheckRank(c, 1, type.rank()));
    for (int d = 0; d < type.rank(); ++d) {
      MSRT_ASSIGN_OR_RETURN(type.dims[d],
                            SameDim(c.dims(0)[d], c.dims(1)[d], StrCat("dim ", d, " of dY and Y")));
    }
  }
  if (type.rank_known)
    MSRT_RETURN_IF_ERROR(NormalizeAxis(c.op().Int("axis"), type.rank()).status());
  c.SetOutput(0, std::move(type));
  return OkStatus();
}

Status ResolveSoftmaxGrad(const OpView& op, ResolvedSpace* space) {
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(op.Int("axis"), op.input(0).rank()));
  ResolveByInput(
      op, [&](int d) { return d == axis; }, space);
  space->inputs[1] = TensorMap::Same(op.input(1).dims);
  space->outputs[0] = TensorMap::Same(op.output(0).dims);
  return OkStatus();
}

Cost CostSoftmaxGrad(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  cost.flops *= 4;
  return cost;
}

// Y * (dY - sum(dY * Y))
Status GradSoftmaxGrad(GradBuilder& g) {
  const ValueId dy = g.input(0), y = g.input(1);
  const ValueId sum = g.SumOver(g.Times(dy, y), {g.op().Int("axis")}, /*keep=*/true);
  g.SetByComposition({g.Times(y, g.Minus(dy, sum))});
  return OkStatus();
}

// dY - exp(Y) * sum(dY)
Status GradLogSoftmaxGrad(GradBuilder& g) {
  const ValueId dy = g.input(0), y = g.input(1);
  const ValueId sum = g.SumOver(dy, {g.op().Int("axis")}, /*keep=*/true);
  g.SetByComposition({g.Minus(dy, g.Times(g.Add("Exp", {y}), sum))});
  return OkStatus();
}

constexpr SpaceDef kSoftmaxGradSpace{.resolve = ResolveSoftmaxGrad};
constexpr AttrDef kSoftmaxGradAttrs[] = {
    {.name = "axis", .default_int = -1, .min_int = -kMaxRank, .max_int = kMaxRank - 1}};
constexpr ParamDef kSoftmaxGradInputs[] = {{.name = "dY", .types = kFloatTypes, .group = 1},
                                           {.name = "Y", .types = kFloatTypes, .group = 1}};

constexpr OpDef kSoftmaxGradOps[] = {
    {.name = "SoftmaxGrad",
     .domain = "msrt",
     .version = 1,
     .attrs = kSoftmaxGradAttrs,
     .inputs = kSoftmaxGradInputs,
     .infer = InferSoftmaxGrad,
     .grad = GradSoftmaxGrad,
     .space = &kSoftmaxGradSpace,
     .cost = CostSoftmaxGrad},
    {.name = "LogSoftmaxGrad",
     .domain = "msrt",
     .version = 1,
     .attrs = kSoftmaxGradAttrs,
     .inputs = kSoftmaxGradInputs,
     .infer = InferSoftmaxGrad,
     .grad = GradLogSoftmaxGrad,
     .space = &kSoftmaxGradSpace,
     .cost = CostSoftmaxGrad},
};

}  // namespace

std::span<const OpDef> SoftmaxGradOps() { return kSoftmaxGradOps; }

}  // namespace msrt
