// Verifies that a converted model computes the same as the original: both get the same inputs, and
// every output is compared. If they differ, the first tensor that differs is searched for. A
// comparison that could not have failed does not pass: an output that is empty, NaN in both, or one
// number regardless of the inputs.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/compile/compile.h"
#include "tools/msconvert/original_runtime.h"
#include "tools/msconvert/tolerance.h"
#include "tools/tensors/compare.h"
#include "tools/tensors/sizes.h"

namespace msrt {

struct VerifyRequest {
  std::shared_ptr<const Environment> environment;
  std::string original_path, msrt_path;
  const RuntimeKind* runtime = nullptr;       // runs the original; null: the folder has the results
  std::string folder;                         // with input_0.npy (or .pb), ..., output_0.npy, ...
  GivenSizes shapes;                          // that the model was converted with
  GivenSizes sizes;                           // to run open dims at
  std::map<std::string, std::string> inputs;  // .npy files by name; other inputs are random
  std::optional<double> tolerance;            // fraction of the range of an output; none: by type
  // The module before its weights were stored small. It must agree, and the difference of the file
  // is only reported. Null: the file must agree.
  const Module* before_weights = nullptr;
};

struct OutputDifference {
  std::string name;
  Type type;
  Tolerance tolerance;
  std::optional<Deviation> difference;  // none: nothing to compare with
  std::string
      mismatch;  // why numbers cannot be compared: another shape; then the difference is infinite

  bool Agrees() const {
    if (!difference) return true;
    const double absolute =
        std::max(tolerance.absolute, tolerance.rounding * difference->magnitude);
    return difference->relative <= tolerance.relative || difference->largest <= absolute;
  }
};

struct VerifyReport {
  std::string reference;
  std::string inputs;                          // "x 1x3x224x224 made up, ids 1x9 from ids.npy"
  std::vector<OutputDifference> outputs;       // of the module that must agree
  std::vector<OutputDifference> with_weights;  // of the file, if that is another module
  bool agrees = true;
  std::string problem;  // why it does not, as a sentence: the first difference, or a vacuous output
  std::string warnings;  // lines about outputs that were not compared

  std::string Text() const;
  std::string Json() const;
};

Result<VerifyReport> Verify(const VerifyRequest& request);

}  // namespace msrt
