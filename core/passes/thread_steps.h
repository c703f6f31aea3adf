// Gives every random op of a module its step (ops/random.cc has the rule). Not a pass that can be
// switched off: without it all runs, calls and iterations would draw the same numbers. Before: a
// valid module with streams. After: the same module in which
//   - an entry that draws reads its step from the state slot kStepSlot (i64, initially 0), which is
//     added if the module has none, and writes the step plus one at its end. So every successful
//     run of a session draws anew, and a session whose slot is reset or written repeats. If the
//     model writes the slot itself, as a training step does, the runtime only reads it;
//   - a graph that draws and is called has one more input, its step. Each call derives it from the
//     caller's step and from a number of its own (msrt.DeriveStep), so that inlining changes
//     nothing and two calls differ;
//   - a loop whose body draws carries its step, which counts up with the iterations;
//   - function values take a step as their last argument, if any of them draws.
// Nodes that have a step keep it; a second application changes nothing. kUnsupported if a graph
// that draws is the body of a loop and is also called in another way.
#pragma once

#include "core/base/status.h"
#include "core/graph/graph.h"

namespace msrt {

inline constexpr std::string_view kStepSlot = "msrt.step";

Status ThreadSteps(Module* module);

}  // namespace msrt
