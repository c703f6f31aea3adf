// Turns inputs and outputs that an application would only carry from one run to the next into state
// that the session keeps.
#pragma once

#include <span>
#include <string>

#include "core/graph/graph.h"

namespace msrt {

// Each pair "INPUT=OUTPUT" of the first entry becomes a state slot named INPUT, initially zero: a
// run reads it in place of the input and writes the output to it. Both are removed from the entry.
// The input's dims must be known.
Status KeepAsState(std::span<const std::string> pairs, Module* module);

}  // namespace msrt
