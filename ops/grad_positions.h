// Helpers of gradient rules that compute with dims and positions, which may be known only at run
// time.
//
// An op that only moves elements, applied to the positions of the elements of its input, tells where
// each element of its output came from. The gradient of the input is the gradient of the output,
// summed up at those positions.
#pragma once

#include "ops/grad_builder.h"

namespace msrt {

// One dim of `v` as i64 and rank 1: a constant if it is known. Requires a known rank.
ValueId DimOf(GradBuilder& g, ValueId v, int axis);
// Lists of i64, one after the other.
ValueId JoinLists(GradBuilder& g, std::vector<ValueId> lists);
ValueId ReshapeToDims(GradBuilder& g, ValueId v, ValueId dims);
// `v` with dims of 1 inserted, as Unsqueeze counts them.
ValueId WithAxes(GradBuilder& g, ValueId v, std::vector<int64_t> axes);
// Zeros of the element type of `like` with the dims in list `dims`.
ValueId ZerosOfDims(GradBuilder& g, ValueId dims, ValueId like);

// 0, 1, ... `count` - 1 as i64; `count` is a list of one number.
ValueId CountUpTo(GradBuilder& g, ValueId count);
// A tensor of i64 with the dims of `like`: the position of each element in row-major order.
ValueId PositionsOf(GradBuilder& g, ValueId like);
// A tensor like `like`: the sum of the elements of `v` that have its position. `positions` has the
// dims of `v`.
ValueId SumAtPositions(GradBuilder& g, ValueId v, ValueId positions, ValueId like);

}  // namespace msrt
