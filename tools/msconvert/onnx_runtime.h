// ONNX Runtime as the reference that conversions are verified against. It runs in a Python process of its own, which a folder of .npy files
// is exchanged with, so that msconvert links none of it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/graph/tensor.h"

namespace msrt {

using NamedTensor = std::pair<std::string, ConstTensor>;

class OnnxRuntime {
 public:
  // Makes the folder and puts the inputs there. Python is $MSCONVERT_PYTHON or python3.
  static Result<OnnxRuntime> Make(std::string model_path, const std::vector<NamedTensor>& inputs);
  ~OnnxRuntime();
  OnnxRuntime(OnnxRuntime&& other) noexcept;
  OnnxRuntime& operator=(OnnxRuntime&&) = delete;

  // Runs the model without its own optimisations. `outputs` may name any tensor that a node of the main graph makes, which needs `patch`,
  // the bytes of onnx_import::MoreOutputs. What has no type in NumPy, or is no tensor, comes back without elements (kNone). kNotFound:
  // there is no Python with ONNX Runtime here.
  Result<std::vector<ConstTensor>> Run(const std::vector<std::string>& outputs, const std::string& patch = {}) const;

 private:
  OnnxRuntime() = default;
  std::string model_path_, folder_;
  std::vector<std::string> inputs_;
};

}  // namespace msrt
