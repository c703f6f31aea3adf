// A user-defined op. Its entry looks like every other: the functions of a built-in entry contain
// the rules, those of a user-defined one call the CustomOp that the OpView carries (set by
// NodeView). Readers of entries need not know the difference.
#pragma once

#include "ops/infer.h"

namespace msrt {

// All functions are called from several threads at once. Their answers come from an application:
// implementations check them.
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

// Makes the functions of `def` call `custom`, which must outlive it.
void AskCustomOp(const CustomOp* custom, bool has_space, OpDef* def);

}  // namespace msrt
