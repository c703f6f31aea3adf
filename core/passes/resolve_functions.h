// Moves the creation of functions next to their calls, so that calls of functions become calls of
// graphs: the call of a function that a branch chooses moves into the branches, and a Partial that
// is passed to a graph moves into that graph. First step of inline_calls.
#pragma once

#include "core/graph/graph.h"

namespace msrt {

// Returns whether anything changed.
bool ResolveFunctions(Module* module);

}  // namespace msrt
