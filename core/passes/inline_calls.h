// Writes graphs out where they are called (msrt.Call; branches and bodies are no calls): those that
// are called at one place only, and small ones that call nothing. A call of a function that a
// Partial beside it has made becomes a call of the graph. Before: a valid module. After: the same
// results by the same kernels; what a call made in its own frame is computed in its caller's. A
// graph that calls itself stays, and so does a call whose arguments are known less well than the
// graph declares them.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Result<bool> InlineCalls(const PassContext& context, Module* module);

}  // namespace msrt
