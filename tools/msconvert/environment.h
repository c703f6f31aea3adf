// The runtime of this machine as msconvert uses it: to pack weights, to see where nodes will run,
// and to verify.
#pragma once

#include <memory>

#include "core/compile/compile.h"

namespace msrt {

// All built-in delegates, and what `plugins` has. `threads` 0: as many as there are cores.
std::shared_ptr<const Environment> EnvironmentHere(const Environment& plugins, int threads = 0);

}  // namespace msrt
