// Helpers of gradient rules that compute with dims and positions, which may be known only at run
// time.
//
// An op that only moves elements, applied to the positions of the elements of its input, tells
// where each element of its output came from. The gradient of the input is the gradient of the
// output, summed up at those positions.
#pragma once

#include "ops/grad_builder.h"

namespace msrt {

// One dim of `v` as i64 and rank 1: a constant if it is known. Requires a known rank.
ValueId DimOf(GradBuilder& g, ValueId v, int axis);
// The dims of a tensor that a rule makes. The list is a constant where all of them are known, so
// that the types of what is made are too.
class DimList {
 public:
  explicit DimList(GradBuilder& g) : g_(g) {}
  DimList& Add(int64_t dim);
  DimList& Add(ValueId v, int axis);            // a dim of `v`, whose rank is known
  DimList& Add(ValueId v, int begin, int end);  // some of them
  ValueId list() const;                         // i64, rank 1

 private:
  GradBuilder& g_;
  std::vector<int64_t> known_;  // kUnknownDim where `values_` has the dim
  std::vector<ValueId> values_;
};

ValueId ReshapeToDims(GradBuilder& g, ValueId v, const DimList& dims);
ValueId Permuted(GradBuilder& g, ValueId v, std::vector<int64_t> perm);
// Elements [begin, end) of one axis; with `step`, every so many of them.
ValueId PartOf(GradBuilder& g, ValueId v, int64_t axis, int64_t begin, int64_t end,
               int64_t step = 1);
ValueId Joined(GradBuilder& g, std::vector<ValueId> parts, int64_t axis);
// `v` with dims of 1 inserted, as Unsqueeze counts them.
ValueId WithAxes(GradBuilder& g, ValueId v, std::vector<int64_t> axes);
// Zeros of the element type of `like`.
ValueId ZerosOfDims(GradBuilder& g, const DimList& dims, ValueId like);

// 0, 1, ... `count` - 1 as i64.
ValueId CountUpTo(GradBuilder& g, int64_t count);
// The same for each element of one axis of `v`, whose rank is known.
ValueId CountAlong(GradBuilder& g, ValueId v, int axis);
// A tensor of i64 with the dims of `like`: the position of each element in row-major order.
ValueId PositionsOf(GradBuilder& g, ValueId like);
// A tensor like `like`: the sum of the elements of `v` that have its position. `positions` has the
// dims of `v`.
ValueId SumAtPositions(GradBuilder& g, ValueId v, ValueId positions, ValueId like);

}  // namespace msrt
