#include "core/train/data/open_samples.h"

#include <filesystem>

#include "core/train/data/npy_pair.h"

namespace msrt {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWindows = "windows:";

}  // namespace

Result<std::unique_ptr<SampleSource>> OpenSamples(const std::string& path,
                                                  const OpenSamplesOptions& options) {
  if (path.starts_with(kWindows))
    return OpenImageWindows(path.substr(kWindows.size()), options.windows);
  const size_t comma = path.find(".npy,");
  if (comma != std::string::npos)
    return OpenNpyPair(path.substr(0, comma + 4), path.substr(comma + 5));
  if (!fs::is_directory(path)) return NotFound("data '", path, "': there is no such folder");
  if (IsCifarFolder(path)) return OpenCifar(path, options.split);
  if (IsMnistFolder(path)) return OpenMnist(path, options.split);
  const std::string part = options.split == DataSplit::kTrain ? "/train_" : "/test_";
  for (const std::string& prefix : {path + part, path + "/"}) {
    if (fs::exists(prefix + "images.npy"))
      return OpenNpyPair(prefix + "images.npy", prefix + "labels.npy");
  }
  return OpenImageFolder(path, options.folder);
}

}  // namespace msrt
