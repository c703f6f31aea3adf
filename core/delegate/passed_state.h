// State slots whose values reach graphs as arguments: parameters that branches and bodies capture.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace msrt {

// Returns for each graph and each of its inputs the slot whose value every caller passes there; -1:
// there is none, or callers differ. Entries have a caller that passes no slots, the application.
std::vector<std::vector<int64_t>> FindPassedSlots(const Module& module);

}  // namespace msrt
