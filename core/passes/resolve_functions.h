// Brings the places where functions are made and where they are called together, so that calls of
// functions become calls of graphs: the call of a function that a branch chooses moves into the
// branches, and a Partial that a graph is handed moves into that graph. What inline_calls begins
// with.
#pragma once

#include "core/graph/graph.h"

namespace msrt {

// True if anything changed.
bool ResolveFunctions(Module* module);

}  // namespace msrt
