// Iteration spaces whose axes are the axes of output 0, each parallel: the usual case for ops that
// move or make elements.
#pragma once

#include "core/region/resolved_space.h"
#include "ops/op_def.h"

namespace msrt {

inline void AddAxes(AxisKind kind, std::span<const int64_t> extents, IterationSpace* axes) {
  for (int64_t e : extents) axes->Add(kind, e);
}

// The axes are the dims of output 0, each parallel; the inputs stay whole.
inline Status ResolveByOutput(const OpView& op, ResolvedSpace* space) {
  AddAxes(AxisKind::kParallel, op.output(0).dims, &space->axes);
  space->outputs[0] = TensorMap::Same(op.output(0).dims);
  return OkStatus();
}

// The axes are the dims of input 0, which follows them; outputs and other inputs stay whole.
// `is_whole(d)`: dim d must not be cut.
template <typename IsWhole>
void ResolveByInput(const OpView& op, const IsWhole& is_whole, ResolvedSpace* space) {
  const Dims& dims = op.input(0).dims;
  for (int d = 0; d < dims.rank(); ++d)
    space->axes.Add(is_whole(d) ? AxisKind::kWhole : AxisKind::kParallel, dims[d]);
  space->inputs[0] = TensorMap::Same(dims);
}

// The values of these inputs are in the attributes of a piece.
inline void DropInputs(size_t first, ResolvedSpace* space) {
  for (size_t i = first; i < space->inputs.size(); ++i) space->inputs[i].dropped = true;
}

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

}  // namespace msrt
