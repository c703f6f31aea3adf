// The runtime of a model's original format, ONNX Runtime or MindSpore, as the reference that
// conversions are verified against. It runs in its own Python process and exchanges .npy files in a
// folder, so that msconvert does not link against it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/graph/tensor.h"

namespace msrt {

using NamedTensor = std::pair<std::string, ConstTensor>;

// A runtime: a name for messages, the Python package, and the script that runs a model.
struct RuntimeKind {
  std::string_view name, package;
  const char* script;
  // Environment variables that name a Python with the package. The first one that is set counts;
  // python3 if none is.
  std::vector<const char*> variables;
};
const RuntimeKind& OnnxRuntimeKind();
const RuntimeKind& MindSporeKind();

class OriginalRuntime {
 public:
  // Creates the folder and writes the inputs to it.
  static Result<OriginalRuntime> Make(const RuntimeKind& kind, std::string model_path,
                                      const std::vector<NamedTensor>& inputs);
  ~OriginalRuntime();
  OriginalRuntime(OriginalRuntime&& other) noexcept;
  OriginalRuntime& operator=(OriginalRuntime&&) = delete;

  const RuntimeKind& kind() const { return kind_; }

  // Runs the model, as it is in the file or (ONNX Runtime) after the runtime's own optimisations.
  // With ONNX Runtime `outputs` may name any output of a node of the main graph, which needs
  // `patch`, the bytes of onnx_import::MoreOutputs; MindSpore returns all outputs in their order.
  // Outputs that are no tensors or have no type in NumPy are returned without elements (kNone).
  // Returns kNotFound if there is no Python with the package.
  Result<std::vector<ConstTensor>> Run(const std::vector<std::string>& outputs,
                                       const std::string& patch = {}, bool optimised = false) const;

 private:
  explicit OriginalRuntime(const RuntimeKind& kind) : kind_(kind) {}
  const RuntimeKind& kind_;
  std::string model_path_, folder_;
  std::vector<std::string> inputs_;
};

}  // namespace msrt
