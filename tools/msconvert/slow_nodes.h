// Warns about nodes that no fast kernel runs on this machine, when a model is converted and not
// only when it turns out to be slow.
#pragma once

#include <string>

#include "core/compile/estimate.h"
#include "tools/tensors/sizes.h"

namespace msrt {

// Returns one line, "3 nodes (GridSample x3) will run as plain loops: 41 % of the estimated time;
// ..."; empty if they take less than a twentieth, or a few microseconds. `typical` are sizes for
// open dims. Kernels are not compiled, so no weight is packed.
Result<std::string> SlowNodesWarning(std::shared_ptr<const Environment> environment,
                                     const Module& module, const GivenSizes& typical,
                                     const PassOptions& passes);

}  // namespace msrt
