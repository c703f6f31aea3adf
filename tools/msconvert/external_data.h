// Weights that a model keeps in files beside it. A model may only name files in its own folder: no
// "..", no absolute path, no link that leads out of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/base/io.h"

namespace msrt {

// A model's description of a tensor whose bytes are in another file.
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
  // Returns the bytes of a tensor, mapped. `bytes` is the number that its type and dims need.
  Result<Bytes> Read(const ExternalTensor& tensor, size_t bytes) const;

 private:
  Result<std::string> PathOf(const std::string& location) const;
  const std::string model_path_;
  Io* const io_;
  mutable std::map<std::string, Bytes> files_;
};

}  // namespace msrt
