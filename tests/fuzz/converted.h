// The stages of msconvert after the import: validation, passes, and a .msrt file that must be
// readable again.
#pragma once

#include "core/graph/graph.h"

namespace msrt::testing {

// Returns whether all stages accepted it.
bool FuzzConverted(Module module);

}  // namespace msrt::testing
