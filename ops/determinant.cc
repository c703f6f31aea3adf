// Det: the determinants of a stack of square matrices.
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

Status InferDet(InferContext& c) {
  const Type& x = c.input(0);
  if (!x.rank_known) {
    c.SetOutput(0, Type::UnrankedTensor(x.dtype));
    return OkStatus();
  }
  if (x.rank() < 2)
    return InvalidModel("input 0 has shape ", x.dims, ", must be matrices of rank 2 or more");
  MSRT_RETURN_IF_ERROR(
      SameDim(x.dims[x.rank() - 2], x.dims[x.rank() - 1], "the rows and columns of a square matrix")
          .status());
  c.SetOutput(0, x.dtype, Dims(std::span(x.dims.begin(), x.dims.size() - 2)));
  return OkStatus();
}

Cost CostDet(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  const auto rows = static_cast<double>(op.input(0).dims.back());
  cost.flops = static_cast<double>(op.output(0).elements()) * rows * rows * rows * 2 / 3;
  return cost;
}

Status DetOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  inputs[0] = Box::Whole(op.input(0).dims);
  for (int i = 0; i < box.rank(); ++i) inputs[0][i] = box[i];
  return OkStatus();
}

constexpr SpaceDef kDetSpace{
    .axes = ParallelOutputAxes, .operands = DetOperands, .results = OutputIsBox};
constexpr ParamDef kDetInputs[] = {{"x", kFloatTypes}};
constexpr OpDef kDeterminantOps[] = {
    {.name = "Det",
     .inputs = kDetInputs,
     .infer = InferDet,
     .grad = GradDet,
     .space = &kDetSpace,
     .cost = CostDet},
};

}  // namespace

std::span<const OpDef> DeterminantOps() { return kDeterminantOps; }

}  // namespace msrt
