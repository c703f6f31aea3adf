// Moves a Pad with a constant into the pads of the Conv, AveragePool or MaxPool that follows, if
// that computes the same: zeros for Conv; zeros that are counted for AveragePool; for MaxPool minus
// infinity, or zeros around values that are never negative. Before: the padded value has no other
// use; only spatial axes are padded, and nothing is cropped.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status FoldPad(const PassContext& context, Graph* graph);

}  // namespace msrt
