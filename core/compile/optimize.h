// The stages from a module as it was loaded to one that is ready for placement: validation, then
// the passes.
#pragma once

#include "core/compile/compiled_model.h"

namespace msrt {

// Validates model->module and runs the passes on it; fills model->passes and the times of both.
Status ValidateAndOptimize(CompiledModel* model);

}  // namespace msrt
