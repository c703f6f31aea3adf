// Inlines graphs at their call sites (msrt.Call; branches and loop bodies are not calls): graphs
// with a single call site, and small graphs that call nothing. A call of a function that a Partial
// in the same graph makes becomes a call of the graph. Before: a valid module. After: the same
// results by the same kernels, computed in the caller's frame. A graph that calls itself stays, and
// so does a call whose arguments have less precise types than the graph declares.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Result<bool> InlineCalls(const PassContext& context, Module* module);

}  // namespace msrt
