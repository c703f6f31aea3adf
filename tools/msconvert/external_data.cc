#include "tools/msconvert/external_data.h"

#include <algorithm>
#include <filesystem>

namespace msrt {

namespace fs = std::filesystem;

Result<std::string> ExternalData::PathOf(const std::string& location) const {
  if (model_path_.empty())
    return InvalidModel("external data '", location, "' of a model that is no file");
  const fs::path relative(location);
  const auto refuse = [&](std::string_view why) {
    return InvalidModel("external data '", location, "' ", why,
                        "; it must be a file in the model's own folder");
  };
  if (location.empty() || location.find('\0') != std::string::npos)
    return refuse("is no name of a file");
  if (relative.is_absolute()) return refuse("is an absolute path");
  for (const fs::path& part : relative) {
    if (part == "..") return refuse("leads out of the model's folder");
  }
  std::error_code error;
  const fs::path folder = fs::canonical(fs::absolute(fs::path(model_path_)).parent_path(), error);
  if (error) return IoError("the folder of '", model_path_, "': ", error.message());
  // Resolves links first, so that none leads out of the folder.
  const fs::path file = fs::canonical(folder / relative, error);
  if (error) return IoError("external data '", location, "': ", error.message());
  const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  if (end != folder.end()) return refuse("is a link that leads out of the model's folder");
  if (!fs::is_regular_file(file, error)) return refuse("is no regular file");
  return file.string();
}

Result<Bytes> ExternalData::Read(const ExternalTensor& tensor, size_t bytes) const {
  const uint64_t length = tensor.length.value_or(bytes);
  if (length != bytes)
    return InvalidModel("tensor '", tensor.name, "' needs ", bytes,
                        " bytes, its external data has ", length);
  auto file = files_.find(tensor.location);
  if (file == files_.end()) {
    auto path = PathOf(tensor.location);
    if (!path.ok()) return std::move(path).status().Within(StrCat("tensor '", tensor.name, "'"));
    MSRT_ASSIGN_OR_RETURN(Bytes mapped, io_->MapFile(*path));
    file = files_.emplace(tensor.location, std::move(mapped)).first;
  }
  const std::span<const std::byte> all = file->second.data;
  if (tensor.offset > all.size() || length > all.size() - tensor.offset) {
    return InvalidModel("tensor '", tensor.name, "': external data '", tensor.location, "' has ",
                        all.size(), " bytes, but ", length, " at offset ", tensor.offset,
                        " are wanted");
  }
  return Bytes{all.subspan(tensor.offset, length), file->second.owner};
}

}  // namespace msrt
