// Removes unused inputs and outputs of called graphs: values that a loop carries only to compute
// themselves, scanned results and results of branches and calls that are never read, captured
// values that are not used. Also removes control flow without effects whose results are unused, and
// graphs that are no longer called. Before: a valid module. After: the same results. A graph with
// several callers keeps its inputs and outputs.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Result<bool> DropDeadCarried(const PassContext& context, Module* module);

}  // namespace msrt
