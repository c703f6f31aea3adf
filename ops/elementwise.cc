#include "ops/elementwise.h"

#include "ops/output_space.h"

namespace msrt {
namespace {

Status CheckAddressable(const Type& type) {
  if (BitsOf(type.dtype) >= 8) return OkStatus();
  return Unsupported("elements of type ", type.dtype,
                     " share bytes, so the node cannot be cut; cast first");
}

Status ResolveElementwise(const OpView& op, ResolvedSpace* space) {
  for (size_t i = 0; i < op.input_count(); ++i) {
    if (op.has_input(i)) MSRT_RETURN_IF_ERROR(CheckAddressable(op.input(i)));
  }
  MSRT_RETURN_IF_ERROR(CheckAddressable(op.output(0)));
  MSRT_RETURN_IF_ERROR(ResolveByOutput(op, space));
  const int rank = op.output(0).rank();
  for (size_t i = 0; i < op.input_count(); ++i) {
    // A bound of Clip may be [1] beside a tensor of rank 0; it stays whole.
    if (op.has_input(i) && op.input(i).rank() <= rank)
      space->inputs[i] = TensorMap::Broadcast(op.input(i).dims, rank);
  }
  return OkStatus();
}

}  // namespace

const SpaceDef kElementwiseSpace{.resolve = ResolveElementwise};

}  // namespace msrt
