// Weights that an ONNX file keeps in files beside it. A model may name files of its own folder only: no way up, no absolute path, no link
// that leads out.
#pragma once

#include <map>
#include <string>

#include "core/base/io.h"

namespace onnx {
class TensorProto;
}

namespace msrt::onnx_import {

class ExternalData {
 public:
  // `model_path` may be empty (a model from memory): then every external tensor is refused.
  ExternalData(std::string model_path, Io* io) : model_path_(std::move(model_path)), io_(io) {}
  // The bytes of a tensor, mapped. `bytes` is what its type and dims need.
  Result<Bytes> Read(const onnx::TensorProto& tensor, size_t bytes) const;

 private:
  Result<std::string> PathOf(const std::string& location) const;
  const std::string model_path_;
  Io* const io_;
  mutable std::map<std::string, Bytes> files_;
};

}  // namespace msrt::onnx_import
