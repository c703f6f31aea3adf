// Softmax, LogSoftmax and Hardmax along one axis. The axis stays whole; all others are parallel.
#include "ops/expansions.h"
#include "ops/families.h"
#include "ops/grad_builder.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

Status InferSoftmax(InferContext& c) {
  if (c.input(0).rank_known) {
    MSRT_ASSIGN_OR_RETURN([[maybe_unused]] const int axis,
                          NormalizeAxis(c.op().Int("axis"), c.input(0).rank()));
  }
  return InferSameAsFirst(c);
}

Status ResolveSoftmax(const OpView& op, ResolvedSpace* space) {
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(op.Int("axis"), op.input(0).rank()));
  ResolveByInput(
      op, [&](int d) { return d == axis; }, space);
  space->outputs[0] = TensorMap::Same(op.output(0).dims);
  return OkStatus();
}

constexpr SpaceDef kSoftmaxSpace{.resolve = ResolveSoftmax};

// Maximum, difference, exponential, sum, quotient.
Cost SoftmaxCost(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  cost.flops *= 5;
  return cost;
}

constexpr AttrDef kSoftmaxAttrs[] = {
    {.name = "axis", .default_int = -1, .min_int = -kMaxRank, .max_int = kMaxRank - 1}};
constexpr ParamDef kSoftmaxInputs[] = {{.name = "input", .types = kFloatTypes}};

constexpr OpDef kSoftmaxOps[] = {
    {.name = "Softmax",
     .attrs = kSoftmaxAttrs,
     .inputs = kSoftmaxInputs,
     .infer = InferSoftmax,
     .grad = GradSoftmax,
     .space = &kSoftmaxSpace,
     .expand = ExpandSoftmax,
     .cost = SoftmaxCost},
    {.name = "LogSoftmax",
     .attrs = kSoftmaxAttrs,
     .inputs = kSoftmaxInputs,
     .infer = InferSoftmax,
     .grad = GradLogSoftmax,
     .space = &kSoftmaxSpace,
     .expand = ExpandLogSoftmax,
     .cost = SoftmaxCost},
    {.name = "Hardmax",
     .attrs = kSoftmaxAttrs,
     .inputs = kSoftmaxInputs,
     .infer = InferSoftmax,
     .grad = GradZero,
     .space = &kSoftmaxSpace},
};

}  // namespace

std::span<const OpDef> SoftmaxOps() { return kSoftmaxOps; }

}  // namespace msrt
