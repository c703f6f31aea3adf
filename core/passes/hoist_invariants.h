// Computes before a loop what is the same in each of its iterations: nodes of the body, or of a
// While's condition, that depend on captured values only. A value that is carried and never changed
// is captured instead, which may make more of them. Before: constants that captured values are have
// become the body's own (fold_control); what depends on constants only is left to folding. After:
// the same results, and no error that was not one: what a loop that may not begin would not have
// computed is computed before it only if no data can make it fail.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Result<bool> HoistInvariants(const PassContext& context, Module* module);

}  // namespace msrt
