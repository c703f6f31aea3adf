#include "ops/elementwise.h"

namespace msrt {
namespace {

Status CheckAddressable(const Type& type) {
  if (BitsOf(type.dtype) >= 8) return OkStatus();
  return Unsupported("elements of type ", type.dtype,
                     " share bytes, so the node cannot be cut; cast first");
}

Status ElementwiseAxes(const OpView& op, IterationSpace* space) {
  for (size_t i = 0; i < op.input_count(); ++i) {
    if (op.has_input(i)) MSRT_RETURN_IF_ERROR(CheckAddressable(op.input(i)));
  }
  MSRT_RETURN_IF_ERROR(CheckAddressable(op.output(0)));
  for (int64_t d : op.output(0).dims) space->Add(AxisKind::kParallel, d);
  return OkStatus();
}

Status ElementwiseOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!op.has_input(i)) continue;
    const Dims& dims = op.input(i).dims;
    if (dims == op.output(0).dims) inputs[i] = box;
    else if (dims.rank() > box.rank())
      inputs[i] = Box::Whole(dims);  // a bound of Clip given as [1] beside a tensor of rank 0
    else inputs[i] = BroadcastNeeds(box, dims);
  }
  return OkStatus();
}

Status ElementwiseResults(const OpView&, const Box& box, std::span<Box> outputs) {
  outputs[0] = box;
  return OkStatus();
}

}  // namespace

const SpaceDef kElementwiseSpace{
    .axes = ElementwiseAxes, .operands = ElementwiseOperands, .results = ElementwiseResults};

}  // namespace msrt
