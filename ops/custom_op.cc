#include "ops/custom_op.h"

namespace msrt {
namespace {

Status InferCustom(InferContext& context) { return context.op().custom()->Infer(context); }
Cost CostOfCustom(const OpView& op) { return op.custom()->CostOf(op); }

constexpr SpaceDef kCustomSpace = {
    .axes = [](const OpView& op, IterationSpace* space) { return op.custom()->Axes(op, space); },
    .operands = [](const OpView& op, const Box& box,
                   std::span<Box> inputs) { return op.custom()->Operands(op, box, inputs); },
    .results = [](const OpView& op, const Box& box,
                  std::span<Box> outputs) { return op.custom()->Results(op, box, outputs); },
    .localize =
        [](const OpView& op, const Box& box, std::span<const Box> inputs,
           std::span<const Box> outputs,
           AttrList* attrs) { return op.custom()->Localize(op, box, inputs, outputs, attrs); },
};

}  // namespace

void AskCustomOp(const CustomOp* custom, bool has_space, OpDef* def) {
  def->custom = custom;
  def->infer = InferCustom;
  def->cost = CostOfCustom;
  def->space = has_space ? &kCustomSpace : nullptr;
}

}  // namespace msrt
