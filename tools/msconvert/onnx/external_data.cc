#include "tools/msconvert/onnx/external_data.h"

#include <charconv>
#include <filesystem>

#include "onnx-ml.pb.h"

namespace msrt::onnx_import {
namespace {

namespace fs = std::filesystem;

Result<uint64_t> NumberOf(const std::string& text, const std::string& tensor, std::string_view key) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return InvalidModel("tensor '", tensor, "': external_data ", key, " = '", text, "' is no number");
  }
  return value;
}

}  // namespace

Result<std::string> ExternalData::PathOf(const std::string& location) const {
  if (model_path_.empty()) return InvalidModel("external data '", location, "' of a model that is no file");
  const fs::path relative(location);
  const auto refuse = [&](std::string_view why) {
    return InvalidModel("external data '", location, "' ", why, "; it must be a file in the model's own folder");
  };
  if (location.empty() || location.find('\0') != std::string::npos) return refuse("is no name of a file");
  if (relative.is_absolute()) return refuse("is an absolute path");
  for (const fs::path& part : relative) {
    if (part == "..") return refuse("leads out of the model's folder");
  }
  std::error_code error;
  const fs::path folder = fs::canonical(fs::absolute(fs::path(model_path_)).parent_path(), error);
  if (error) return IoError("the folder of '", model_path_, "': ", error.message());
  // Links are followed first, so that none leads out.
  const fs::path file = fs::canonical(folder / relative, error);
  if (error) return IoError("external data '", location, "': ", error.message());
  const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  if (end != folder.end()) return refuse("is a link that leads out of the model's folder");
  if (!fs::is_regular_file(file, error)) return refuse("is no regular file");
  return file.string();
}

Result<Bytes> ExternalData::Read(const onnx::TensorProto& tensor, size_t bytes) const {
  std::string location;
  uint64_t offset = 0, length = bytes;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") {
      MSRT_ASSIGN_OR_RETURN(offset, NumberOf(entry.value(), tensor.name(), "offset"));
    }
    if (entry.key() == "length") {
      MSRT_ASSIGN_OR_RETURN(length, NumberOf(entry.value(), tensor.name(), "length"));
    }
  }
  if (length != bytes) return InvalidModel("tensor '", tensor.name(), "' needs ", bytes, " bytes, its external data has ", length);
  auto file = files_.find(location);
  if (file == files_.end()) {
    auto path = PathOf(location);
    if (!path.ok()) return std::move(path).status().Within(StrCat("tensor '", tensor.name(), "'"));
    MSRT_ASSIGN_OR_RETURN(Bytes mapped, io_->MapFile(*path));
    file = files_.emplace(location, std::move(mapped)).first;
  }
  const std::span<const std::byte> all = file->second.data;
  if (offset > all.size() || length > all.size() - offset) {
    return InvalidModel("tensor '", tensor.name(), "': external data '", location, "' has ", all.size(), " bytes, but ", length,
                        " at offset ", offset, " are wanted");
  }
  return Bytes{all.subspan(offset, length), file->second.owner};
}

}  // namespace msrt::onnx_import
