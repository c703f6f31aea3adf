// Writes statistics over several axes as one reduction along the last of them, which yields a small
// value for each row of an image, and a reduction of these. The sums then form a tree that global
// coordinates fix, so that a run that has the image row by row computes the same bits as a run that
// has it whole. Applies to reductions over two axes or more, global pools, instance and group
// normalisation of one image, and softmax over all positions of an image.
// Runs in exact mode only. Before: types inferred, norms recognised.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status SplitStatistics(const PassContext& context, Graph* graph);

}  // namespace msrt
