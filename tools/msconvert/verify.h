// Whether a converted model computes what the original does: both get the same inputs, and every output is compared. Where they part, the
// first tensor that differs is looked for.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "tools/tensors/compare.h"

namespace msrt {

struct VerifyRequest {
  std::string onnx_path, msrt_path;
  std::string against;                 // "onnxruntime", or a folder of input_0.npy (or .pb), ..., output_0.npy, ...
  std::map<std::string, Dims> shapes;  // of inputs
  double tolerance = 1e-4;             // of the range of an output
  // The module before its weights were stored small: it is what must agree, and of the file the difference is only told. Null: the file
  // must agree.
  const Module* before_weights = nullptr;
};

struct OutputDifference {
  std::string name;
  Type type;
  std::optional<Deviation> difference;  // none: nothing to compare with
};

struct VerifyReport {
  std::string reference;
  double tolerance = 0;
  std::vector<OutputDifference> outputs;       // of what must agree
  std::vector<OutputDifference> with_weights;  // of the file, where that is something else
  bool agrees = true;
  std::string culprit;  // where the two part first, as a sentence

  std::string Text() const;
  std::string Json() const;
};

Result<VerifyReport> Verify(const VerifyRequest& request);

}  // namespace msrt
