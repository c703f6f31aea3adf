// Softmax, LogSoftmax and Hardmax along one axis. The axis stays whole; all others are parallel.
#include "ops/families.h"
#include "ops/infer.h"

namespace msrt {
namespace {

Status InferSoftmax(InferContext& c) {
  if (c.input(0).rank_known) {
    MSRT_ASSIGN_OR_RETURN([[maybe_unused]] const int axis,
                          NormalizeAxis(c.op().Int("axis"), c.input(0).rank()));
  }
  return InferSameAsFirst(c);
}

Status SoftmaxAxes(const OpView& op, IterationSpace* space) {
  const Dims& dims = op.input(0).dims;
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(op.Int("axis"), dims.rank()));
  for (int i = 0; i < dims.rank(); ++i)
    space->Add(i == axis ? AxisKind::kWhole : AxisKind::kParallel, dims[i]);
  return OkStatus();
}

Status SoftmaxOperands(const OpView&, const Box& box, std::span<Box> inputs) {
  inputs[0] = box;
  return OkStatus();
}

Status SoftmaxResults(const OpView&, const Box& box, std::span<Box> outputs) {
  outputs[0] = box;
  return OkStatus();
}

constexpr SpaceDef kSoftmaxSpace{
    .axes = SoftmaxAxes, .operands = SoftmaxOperands, .results = SoftmaxResults};

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
     .grad = GradPending,
     .space = &kSoftmaxSpace,
     .cost = SoftmaxCost},
    {.name = "LogSoftmax",
     .attrs = kSoftmaxAttrs,
     .inputs = kSoftmaxInputs,
     .infer = InferSoftmax,
     .grad = GradPending,
     .space = &kSoftmaxSpace,
     .cost = SoftmaxCost},
    {.name = "Hardmax",
     .attrs = kSoftmaxAttrs,
     .inputs = kSoftmaxInputs,
     .infer = InferSoftmax,
     .space = &kSoftmaxSpace},
};

}  // namespace

std::span<const OpDef> SoftmaxOps() { return kSoftmaxOps; }

}  // namespace msrt
