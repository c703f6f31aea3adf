// Finds where a converted model diverges from its ONNX original: the first tensor that differs, or
// the pass that causes the difference.
#pragma once

#include "tools/msconvert/verify_run.h"

namespace msrt {

// Returns a sentence. `reference` runs the original on the inputs of `run`; `wanted` are its
// outputs.
Result<std::string> FindCulprit(const VerifyRequest& request, const VerifyRun& run,
                                const OriginalRuntime& reference,
                                const std::vector<ConstTensor>& wanted,
                                const std::vector<Tolerance>& tolerances);

}  // namespace msrt
