// Inputs and outputs that an application would only carry from one run to the next, as state that
// the session keeps.
#pragma once

#include <span>
#include <string>

#include "core/graph/graph.h"

namespace msrt {

// Each pair "INPUT=OUTPUT" of the first entry becomes a state slot named INPUT, which begins with
// zeros: a run reads it where it read the input, and writes to it what it gave as the output. Both
// are gone from the entry. The input's dims must be known.
Status KeepAsState(std::span<const std::string> pairs, Module* module);

}  // namespace msrt
