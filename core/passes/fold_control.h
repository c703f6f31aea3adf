// Decides what is decided: an If or SwitchN whose condition is constant, or whose branches are the
// same, becomes a call of one branch; a loop that never begins gives what it was given. Constants
// that every caller of a graph hands to it become the graph's own, so that more of it can be
// folded. Before: constants folded. After: as much may still be decided once what is called now has
// been written out (inline_calls).
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Result<bool> FoldControl(const PassContext& context, Module* module);

}  // namespace msrt
