// The runtime on this machine, which msconvert uses to pack weights, to estimate where nodes will
// run, and to verify.
#pragma once

#include <memory>

#include "core/compile/compile.h"

namespace msrt {

// Has all built-in delegates and those of `plugins`. `threads` 0: one for each core.
std::shared_ptr<const Environment> LocalEnvironment(const Environment& plugins, int threads = 0);

}  // namespace msrt
