// Turns tail recursion into loops, which need no frame for each step and in which more can be moved
// and folded. A graph
//   header(values) = if (condition) body(values) else exit(values)
// whose body always ends by calling the header again, from whatever branches and calls of its own,
// becomes
//   Loop(condition, values) { the body up to that call; the header up to its branch }; exit(values)
// Either branch may be the body. What the header computes before it branches is computed before the
// loop and at the end of each iteration, so that everything runs as often and in the same order as
// before, effects included. Before: calls that are written out are (inline_calls). After: graphs
// that call themselves in other places stay.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Result<bool> RecoverLoops(const PassContext& context, Module* module);

}  // namespace msrt
