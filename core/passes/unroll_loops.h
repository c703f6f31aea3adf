// Unrolls loops with a known number of iterations (Loop with a constant count, and a condition that
// always holds): loops that run once, and loops that stay small, where a call for each iteration
// costs more than the body. Before: constants folded. After: the same results by the same kernels.
// Bodies with effects or control flow are unrolled only if they run once: a node with effects is
// never duplicated.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Result<bool> UnrollLoops(const PassContext& context, Module* module);

}  // namespace msrt
