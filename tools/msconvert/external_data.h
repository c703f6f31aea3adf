// Weights that a model keeps in files beside it. A model may name files of its own folder only: no
// way up, no absolute path, no link that leads out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/base/io.h"

namespace msrt {

// What a model says about a tensor whose bytes stand elsewhere.
struct ExternalTensor {
  std::string name;      // for messages
  std::string location;  // of the file, relative to the model's folder
  uint64_t offset = 0;
  std::optional<uint64_t> length;
};

class ExternalData {
 public:
  // `model_path` may be empty (a model from memory): then every external tensor is refused.
  ExternalData(std::string model_path, Io* io) : model_path_(std::move(model_path)), io_(io) {}
  // The bytes of a tensor, mapped. `bytes` is what its type and dims need.
  Result<Bytes> Read(const ExternalTensor& tensor, size_t bytes) const;

 private:
  Result<std::string> PathOf(const std::string& location) const;
  const std::string model_path_;
  Io* const io_;
  mutable std::map<std::string, Bytes> files_;
};

}  // namespace msrt
