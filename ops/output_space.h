// Iteration spaces whose axes are the axes of output 0, each parallel: the usual case for ops that
// move or make elements.
#pragma once

#include "ops/op_def.h"

namespace msrt {

inline Status ParallelOutputAxes(const OpView& op, IterationSpace* space) {
  for (int64_t d : op.output(0).dims) space->Add(AxisKind::kParallel, d);
  return OkStatus();
}

inline Status OutputIsBox(const OpView&, const Box& box, std::span<Box> outputs) {
  outputs[0] = box;
  return OkStatus();
}

// The box has the first axes of the output; the others are whole.
inline Status OutputBeginsWithBox(const OpView& op, const Box& box, std::span<Box> outputs) {
  outputs[0] = Box::Whole(op.output(0).dims);
  for (int i = 0; i < box.rank(); ++i) outputs[0][i] = box[i];
  return OkStatus();
}

// Sets the boxes of all inputs to the whole inputs; the caller overwrites those that a piece reads
// in part.
inline void WholeOperands(const OpView& op, std::span<Box> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (op.has_input(i)) inputs[i] = Box::Whole(op.input(i).dims);
  }
}

inline std::vector<int64_t> ExtentsOf(const Box& box) {
  std::vector<int64_t> extents;
  for (int i = 0; i < box.rank(); ++i) extents.push_back(box[i].size());
  return extents;
}

// `localize` rewrites only attributes, so a list that is an input cannot be adapted to a piece.
inline Status RefuseListInputs(const OpView& op, size_t first) {
  for (size_t i = first; i < op.input_count(); ++i) {
    if (op.has_input(i))
      return Unsupported("cannot be cut while input ", i, " is not an attribute");
  }
  return OkStatus();
}

}  // namespace msrt
