// The part of RecognizeAttention that comes last: Attention nodes whose heads are split off before
// and merged behind by Transposes read and write them packed, [batch, rows, heads * width], where
// they lie.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

// Whether anything changed.
bool PackHeads(const PassContext& context, Graph* graph);

}  // namespace msrt
