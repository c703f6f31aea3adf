// Inputs and outputs of entries that the application has on devices (CompileOptions::io_devices).
#pragma once

#include <string>
#include <vector>

#include "core/compile/compiled_model.h"

namespace msrt {

// Returns the values of an entry with the names of their devices, none for other graphs. An entry
// that other graphs call cannot have any: its callers pass values on the host.
Result<std::vector<std::pair<ValueId, std::string>>> FindHomes(const CompiledModel& model,
                                                               uint32_t graph);
// Every name must be that of an input or output of an entry.
Status CheckHomeNames(const CompiledModel& model);

}  // namespace msrt
