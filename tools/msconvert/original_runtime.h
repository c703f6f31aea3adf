// The runtime of a model's own format, ONNX Runtime or MindSpore, as the reference that conversions
// are verified against. It runs in a Python process of its own, which a folder of .npy files is
// exchanged with, so that msconvert links none of it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/graph/tensor.h"

namespace msrt {

using NamedTensor = std::pair<std::string, ConstTensor>;

// Which one: a name for messages, the Python package, and the script that runs a model.
struct RuntimeKind {
  std::string_view name, package;
  const char* script;
  // Environment variables that name a Python with the package, the first that is set; else it is
  // python3.
  std::vector<const char*> variables;
};
const RuntimeKind& OnnxRuntimeKind();
const RuntimeKind& MindSporeKind();

class OriginalRuntime {
 public:
  // Makes the folder and puts the inputs there.
  static Result<OriginalRuntime> Make(const RuntimeKind& kind, std::string model_path,
                                      const std::vector<NamedTensor>& inputs);
  ~OriginalRuntime();
  OriginalRuntime(OriginalRuntime&& other) noexcept;
  OriginalRuntime& operator=(OriginalRuntime&&) = delete;

  const RuntimeKind& kind() const { return kind_; }

  // Runs the model, as it is in the file or (ONNX Runtime) after the runtime's own optimisations.
  // With ONNX Runtime `outputs` may name any tensor that a node of the main graph makes, which
  // needs `patch`, the bytes of onnx_import::MoreOutputs; MindSpore returns all outputs in their
  // order. What has no type in NumPy, or is no tensor, comes back without elements (kNone).
  // kNotFound: there is no Python with the package here.
  Result<std::vector<ConstTensor>> Run(const std::vector<std::string>& outputs,
                                       const std::string& patch = {}, bool optimised = false) const;

 private:
  explicit OriginalRuntime(const RuntimeKind& kind) : kind_(kind) {}
  const RuntimeKind& kind_;
  std::string model_path_, folder_;
  std::vector<std::string> inputs_;
};

}  // namespace msrt
