// An op that an application defines. Its entry looks like every other; where the functions of a
// built-in entry hold rules, those of this one ask the CustomOp that the OpView carries (NodeView
// puts it there), so whoever reads entries need not know the difference.
#pragma once

#include "ops/infer.h"

namespace msrt {

// All functions are called from several threads at once. What they answer comes from an
// application: implementations check it.
class CustomOp {
 public:
  virtual ~CustomOp() = default;
  virtual Status Infer(InferContext& context) const = 0;
  virtual Cost CostOf(const OpView& op) const = 0;
  // As in SpaceDef. Called only if the entry has a space.
  virtual Status Axes(const OpView& op, IterationSpace* space) const = 0;
  virtual Status Operands(const OpView& op, const Box& box, std::span<Box> inputs) const = 0;
  virtual Status Results(const OpView& op, const Box& box, std::span<Box> outputs) const = 0;
  virtual Status Localize(const OpView& op, const Box& box, std::span<const Box> inputs,
                          std::span<const Box> outputs, AttrList* attrs) const = 0;
};

// Makes `def` ask `custom`, which must outlive it.
void AskCustomOp(const CustomOp* custom, bool has_space, OpDef* def);

}  // namespace msrt
