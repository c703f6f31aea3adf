// Where a converted model and its ONNX original part: the first tensor that differs, or the pass
// that makes the difference.
#pragma once

#include "tools/msconvert/verify_run.h"

namespace msrt {

// As a sentence. `reference` runs the original on the inputs of `run`; `wanted` are its outputs.
Result<std::string> FindCulprit(const VerifyRequest& request, const VerifyRun& run,
                                const OriginalRuntime& reference,
                                const std::vector<ConstTensor>& wanted,
                                const std::vector<Tolerance>& tolerances);

}  // namespace msrt
