#include "core/train/data/image_folder.h"

#include <algorithm>
#include <filesystem>

#include "core/image/files/image_source.h"
#include "core/train/data/picture_ops.h"

namespace msrt {
namespace {

namespace fs = std::filesystem;

bool IsImageName(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  constexpr std::string_view kExtensions[] = {".jpg", ".jpeg", ".png", ".tif", ".tiff"};
  return std::find(std::begin(kExtensions), std::end(kExtensions), extension) !=
         std::end(kExtensions);
}

// Lists what `wanted` accepts in a folder, sorted by name. Hidden entries are left out.
template <typename Iterator, typename Wanted>
Result<std::vector<std::string>> List(const std::string& path, const Wanted& wanted) {
  std::vector<std::string> found;
  std::error_code error;
  Iterator entry(path, fs::directory_options::follow_directory_symlink, error), end;
  while (!error && entry != end) {
    if (!entry->path().filename().string().starts_with('.') && wanted(*entry))
      found.push_back(entry->path().string());
    entry.increment(error);
  }
  if (error) return IoError("folder '", path, "': ", error.message());
  std::sort(found.begin(), found.end());
  return found;
}

class ImageFolder final : public SampleSource {
 public:
  ImageFolder(int64_t channels, std::vector<std::string> class_names)
      : channels_(channels), class_names_(std::move(class_names)) {}

  void Add(const std::string& root, std::vector<std::string> files, int64_t label) {
    for (std::string& file : files) {
      hash_.Add(fs::path(file).lexically_relative(root).string());
      hash_.Add(label);
      std::error_code error;
      hash_.Add(static_cast<int64_t>(fs::file_size(file, error)));
      files_.push_back({std::move(file), label});
    }
  }

  int64_t samples() const override { return static_cast<int64_t>(files_.size()); }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::string NameOf(int64_t index) const override {
    return StrCat("image '", files_[static_cast<size_t>(index)].path, "'");
  }
  Status Read(int64_t index, SampleRandom, Picture* out) const override {
    const File& file = files_[static_cast<size_t>(index)];
    out->label = file.label;
    out->label_map.clear();
    return ReadPicture(file.path, channels_, out);
  }
  uint64_t fingerprint() const override { return hash_.value(); }

 private:
  struct File {
    std::string path;
    int64_t label;
  };
  const int64_t channels_;
  const std::vector<std::string> class_names_;
  std::vector<File> files_;
  Fingerprint hash_;
};

// Replaces indices by the colours of the palette, 0 to 255.
Status ApplyPalette(const std::vector<PaletteEntry>& palette, Picture* picture) {
  const int64_t plane = picture->rows * picture->cols;
  std::vector<float> colors(static_cast<size_t>(3 * plane));
  for (int64_t i = 0; i < plane; ++i) {
    const auto index = static_cast<size_t>(picture->pixels[static_cast<size_t>(i)]);
    if (index >= palette.size())
      return InvalidArgument("pixel ", i, " has colour ", index, " of a palette of ",
                             palette.size());
    const PaletteEntry& color = palette[index];
    constexpr float kPerStep = 257;  // 65535 / 255
    colors[static_cast<size_t>(i)] = static_cast<float>(color.red) / kPerStep;
    colors[static_cast<size_t>(plane + i)] = static_cast<float>(color.green) / kPerStep;
    colors[static_cast<size_t>(2 * plane + i)] = static_cast<float>(color.blue) / kPerStep;
  }
  picture->pixels = std::move(colors);
  picture->channels = 3;
  return OkStatus();
}

// Four channels of a JPEG are inverted cyan, magenta, yellow and black.
void CmykToRgb(Picture* picture) {
  const int64_t plane = picture->rows * picture->cols;
  for (int64_t channel = 0; channel < 3; ++channel) {
    for (int64_t i = 0; i < plane; ++i) picture->Plane(channel)[i] *= picture->Plane(3)[i] / 255.0F;
  }
  picture->channels = 3;
  picture->pixels.resize(static_cast<size_t>(3 * plane));
}

}  // namespace

Status ReadPicture(const std::string& path, int64_t channels, Picture* out) {
  // Blocks are decoded once, on this thread: others decode other files.
  OpenOptions options;
  options.decoders = 1;
  MSRT_ASSIGN_OR_RETURN(const std::unique_ptr<ImageSource> source, OpenImage(path, options));
  const ImageInfo& info = source->info();
  constexpr int64_t kMaxPixels = int64_t{1} << 28, kMaxChannels = 64;
  if (info.height > kMaxPixels / info.width || info.channels > kMaxChannels)
    return LimitExceeded(path, ": an image of ", info.channels, " x ", info.height, " x ",
                         info.width, " is too large for a sample; use windows of it");
  out->Resize(info.channels, info.height, info.width);
  MSRT_RETURN_IF_ERROR(
      source->Read({0, 0, info.height, info.width},
                   {out->pixels.data(), DType::kF32, info.height * info.width, info.width}));
  Status status;
  if (!info.palette.empty()) {
    status = ApplyPalette(info.palette, out);
  } else if (info.dtype == DType::kU16) {
    for (float& value : out->pixels) value /= 257;
  }
  if (info.channels == 4 && info.format == "JPEG") CmykToRgb(out);
  if (status.ok()) status = ConvertChannels(channels, out);
  return std::move(status).Within(path);
}

Result<std::unique_ptr<SampleSource>> OpenImageFolder(const std::string& path,
                                                      const ImageFolderOptions& options) {
  const auto is_folder = [](const fs::directory_entry& entry) { return entry.is_directory(); };
  const auto is_image = [](const fs::directory_entry& entry) {
    return entry.is_regular_file() && IsImageName(entry.path());
  };
  MSRT_ASSIGN_OR_RETURN(const std::vector<std::string> folders,
                        List<fs::directory_iterator>(path, is_folder));
  if (folders.empty())
    return InvalidArgument("folder '", path,
                           "' has no folders in it; an image folder has one for each class");
  std::vector<std::string> names = options.class_names;
  if (names.empty()) {
    for (const std::string& folder : folders) names.push_back(fs::path(folder).filename().string());
  }
  auto source = std::make_unique<ImageFolder>(options.channels, names);
  for (const std::string& folder : folders) {
    const std::string name = fs::path(folder).filename().string();
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      return InvalidArgument("folder '", folder, "': there is no class '", name,
                             "' in the training data");
    MSRT_ASSIGN_OR_RETURN(std::vector<std::string> files,
                          List<fs::recursive_directory_iterator>(folder, is_image));
    if (files.empty())
      return InvalidArgument("class '", name, "' is empty: folder '", folder,
                             "' has no .jpg, .png or .tif file; add some or remove the folder");
    source->Add(path, std::move(files), found - names.begin());
  }
  return std::unique_ptr<SampleSource>(std::move(source));
}

}  // namespace msrt
