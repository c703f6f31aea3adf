// Last step of RecognizeAttention: an Attention whose heads are split by Transposes before it and
// merged after it reads and writes them packed, [batch, rows, heads * width], without the
// Transposes.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

// Returns whether anything changed.
bool PackHeads(const PassContext& context, Graph* graph);

}  // namespace msrt
