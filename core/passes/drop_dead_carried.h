// Removes what crosses the border of a graph for nobody: values that a loop carries only to compute
// themselves, scanned results and results of branches and calls that nobody reads, captured values
// that are not used; control flow without effects whose results nobody reads; and graphs that
// nobody calls any more. Before: a valid module. After: the same results. What is called from
// several places keeps its inputs and outputs.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Result<bool> DropDeadCarried(const PassContext& context, Module* module);

}  // namespace msrt
