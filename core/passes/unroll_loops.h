// Writes out loops that run a known number of times (Loop with a constant count, and a condition
// that always holds): those that run once, and those that are small when written out, where a call
// for each iteration costs more than what is computed in it. Before: constants folded. After: the
// same results by the same kernels. Bodies with effects or control flow of their own are written
// out only if they run once: a node with effects stays one node.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Result<bool> UnrollLoops(const PassContext& context, Module* module);

}  // namespace msrt
