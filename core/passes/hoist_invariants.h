// Moves loop-invariant nodes before the loop: nodes of the body, or of a While's condition, that
// depend on captured values only. A value that is carried and never changed is captured instead,
// which may make more nodes invariant. Before: captured constants have become constants of the body
// (fold_control); nodes that depend on constants only are left to folding. After: the same results
// and no new errors: if the loop may not begin, a node is moved only if no data can make it fail.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Result<bool> HoistInvariants(const PassContext& context, Module* module);

}  // namespace msrt
