// Resolves control flow that is known before the run: an If or SwitchN whose condition is constant,
// or whose branches are the same, becomes a call of one branch; a loop that never begins is
// replaced by its initial values. A constant that every caller passes to a graph becomes a constant
// of the graph, so that more of it can be folded. Before: constants folded. After: more may be
// resolved once the new calls have been inlined (inline_calls).
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Result<bool> FoldControl(const PassContext& context, Module* module);

}  // namespace msrt
