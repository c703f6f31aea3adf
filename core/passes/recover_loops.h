// Turns tail recursion into loops, which need no frame for each step and can be optimised further.
// A graph
//   header(values) = if (condition) body(values) else exit(values)
// whose body always ends by calling the header again, possibly inside its own branches and calls,
// becomes
//   Loop(condition, values) { the body up to that call; the header up to its branch }; exit(values)
// Either branch may be the body. The nodes of the header before its branch run before the loop and
// at the end of each iteration, so that everything runs as often and in the same order as before,
// effects included. Before: calls have been inlined (inline_calls). After: graphs that call
// themselves in other positions stay.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Result<bool> RecoverLoops(const PassContext& context, Module* module);

}  // namespace msrt
