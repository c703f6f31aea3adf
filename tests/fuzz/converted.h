// What msconvert does with a module after it was imported: validation, passes, and a .msrt file
// that must be readable again.
#pragma once

#include "core/graph/graph.h"

namespace msrt::testing {

// True if it was taken all the way.
bool FuzzConverted(Module module);

}  // namespace msrt::testing
