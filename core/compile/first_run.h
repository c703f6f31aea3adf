// Work that the first run would otherwise do, such as generating code, done while a model loads.
#pragma once

#include "core/compile/compiled_model.h"

namespace msrt {

// Prepares the kernels of `entry` for inputs of these dims. Does nothing where a dim is unknown.
Status PrepareFirstRun(const CompiledModel& model, const EntryProgram& entry,
                       const std::vector<Dims>& typical);

}  // namespace msrt
