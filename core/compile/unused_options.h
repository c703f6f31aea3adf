// Warnings about options that have no effect on a model.
#pragma once

#include "core/compile/compiled_model.h"

namespace msrt {

// Logs each pin that matches no node: a typo, or the name of a node that a pass merged into
// another. Call after the passes.
void WarnAboutUnusedPins(const CompiledModel& model);

// Logs that accuracy 'fast' has no effect where no kernel computes with fewer bits. Call when the
// programs are made.
void WarnAboutUnusedReduction(const CompiledModel& model);

}  // namespace msrt
