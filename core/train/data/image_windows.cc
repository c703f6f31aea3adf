#include "core/train/data/image_windows.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "core/image/files/window_sampler.h"

namespace msrt {
namespace {

namespace fs = std::filesystem;

constexpr float kIgnoredByte = 255;

struct LabelledImage {
  std::string path;
  std::unique_ptr<ImageSource> pixels, labels;
  int64_t first_tile = 0;  // of the grid over all images
  int64_t tile_rows = 0, tile_cols = 0;
  double area_before = 0;  // of all images before this one
};

Result<std::map<std::string, std::string>> FilesByStem(const std::string& folder) {
  std::map<std::string, std::string> files;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (entry->is_regular_file() && !entry->path().filename().string().starts_with('.'))
      files[entry->path().stem().string()] = entry->path().string();
  }
  if (error) return IoError("folder '", folder, "': ", error.message());
  if (files.empty()) return InvalidArgument("folder '", folder, "' is empty");
  return files;
}

Result<LabelledImage> OpenPair(const std::string& image, const std::string& labels,
                               const ImageWindowOptions& options) {
  LabelledImage pair;
  pair.path = image;
  MSRT_ASSIGN_OR_RETURN(pair.pixels, OpenImage(image));
  MSRT_ASSIGN_OR_RETURN(pair.labels, OpenImage(labels));
  const ImageInfo &a = pair.pixels->info(), &b = pair.labels->info();
  if (b.channels != 1 || a.height != b.height || a.width != b.width)
    return InvalidArgument(labels, ": labels of ", b.channels, " x ", b.height, " x ", b.width,
                           " for an image of ", a.height, " x ", a.width,
                           "; they must have one channel and the image's size");
  if (options.rows > a.height || options.cols > a.width)
    return InvalidArgument(image, ": windows of ", options.rows, " x ", options.cols,
                           " do not fit in an image of ", a.height, " x ", a.width);
  pair.tile_rows = (a.height + options.rows - 1) / options.rows;
  pair.tile_cols = (a.width + options.cols - 1) / options.cols;
  return pair;
}

class ImageWindows final : public SampleSource {
 public:
  ImageWindows(std::vector<LabelledImage> images, const ImageWindowOptions& options)
      : images_(std::move(images)), options_(options) {
    for (LabelledImage& image : images_) {
      image.first_tile = tiles_;
      image.area_before = area_;
      const ImageInfo& info = image.pixels->info();
      tiles_ += image.tile_rows * image.tile_cols;
      area_ += static_cast<double>(info.height) * static_cast<double>(info.width);
      hash_.Add(fs::path(image.path).filename().string());
      hash_.Add(info.height);
      hash_.Add(info.width);
    }
    hash_.Add(options_.windows);
  }

  // Requires labels below the number of classes; finds that number if it is not given.
  Status CountClasses() {
    int64_t classes = options_.classes;
    for (const LabelledImage& image : images_) {
      if (options_.classes != 0) break;
      const ImageInfo& info = image.labels->info();
      std::vector<float> row(static_cast<size_t>(info.width));
      for (int64_t r = 0; r < info.height; ++r) {
        MSRT_RETURN_IF_ERROR(image.labels->Read({r, 0, 1, info.width, 0, 1},
                                                {row.data(), DType::kF32, info.width, info.width}));
        for (const float label : row) {
          if (!IsIgnored(info, label)) classes = std::max(classes, static_cast<int64_t>(label) + 1);
        }
      }
    }
    constexpr int64_t kMaxClasses = 1 << 16;
    if (classes < 1 || classes > kMaxClasses)
      return InvalidArgument("the label images have ", classes, " classes");
    for (int64_t c = 0; c < classes; ++c) class_names_.push_back(StrCat(c));
    return OkStatus();
  }

  int64_t samples() const override { return options_.windows > 0 ? options_.windows : tiles_; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  bool has_label_maps() const override { return true; }
  std::string NameOf(int64_t index) const override {
    if (options_.windows > 0) return StrCat("window ", index, " of ", images_.size(), " images");
    return StrCat("window ", index, " of '", ImageOfTile(index).path, "'");
  }

  Status Read(int64_t index, SampleRandom random, Picture* out) const override {
    if (options_.windows > 0) {
      const LabelledImage& image = ImageAt(random.Uniform() * area_);
      SamplerOptions sampler_options;
      sampler_options.rows = options_.rows, sampler_options.cols = options_.cols;
      sampler_options.seed = random.Next();
      MSRT_ASSIGN_OR_RETURN(const WindowSampler sampler,
                            WindowSampler::Make(image.pixels.get(), sampler_options));
      return ReadWindow(image, sampler.Choose(0).window, out);
    }
    const LabelledImage& image = ImageOfTile(index);
    const ImageInfo& info = image.pixels->info();
    const int64_t tile = index - image.first_tile;
    // Tiles at the lower and right border move inwards; pixels of the tile before are ignored.
    const int64_t first_row = tile / image.tile_cols * options_.rows,
                  first_col = tile % image.tile_cols * options_.cols;
    const int64_t row = std::min(first_row, info.height - options_.rows),
                  col = std::min(first_col, info.width - options_.cols);
    MSRT_RETURN_IF_ERROR(
        ReadWindow(image, {row, col, options_.rows, options_.cols, 0, info.channels}, out));
    for (int64_t r = 0; r < options_.rows; ++r) {
      for (int64_t c = 0; c < options_.cols; ++c) {
        if (row + r < first_row || col + c < first_col)
          out->label_map[static_cast<size_t>(r * options_.cols + c)] =
              static_cast<int32_t>(kIgnoredLabel);
      }
    }
    return OkStatus();
  }
  uint64_t fingerprint() const override { return hash_.value(); }

 private:
  static bool IsIgnored(const ImageInfo& info, float label) {
    return label < 0 || (info.dtype == DType::kU8 && label == kIgnoredByte) ||
           (info.no_data.has_value() && static_cast<double>(label) == *info.no_data);
  }

  const LabelledImage& ImageOfTile(int64_t index) const {
    size_t i = images_.size() - 1;
    while (images_[i].first_tile > index) --i;
    return images_[i];
  }
  const LabelledImage& ImageAt(double area) const {
    size_t i = images_.size() - 1;
    while (i > 0 && images_[i].area_before > area) --i;
    return images_[i];
  }

  Status ReadWindow(const LabelledImage& image, const ImageWindow& window, Picture* out) const {
    const int64_t pixels = window.rows * window.cols;
    out->Resize(image.pixels->info().channels, window.rows, window.cols);
    MSRT_RETURN_IF_ERROR(
        image.pixels->Read(window, {out->pixels.data(), DType::kF32, pixels, window.cols}));
    std::vector<float> labels(static_cast<size_t>(pixels));
    ImageWindow label_window = window;
    label_window.channels = 1;
    MSRT_RETURN_IF_ERROR(
        image.labels->Read(label_window, {labels.data(), DType::kF32, pixels, window.cols}));
    out->label = kIgnoredLabel;
    out->label_map.resize(labels.size());
    for (size_t i = 0; i < labels.size(); ++i) {
      const bool ignored = IsIgnored(image.labels->info(), labels[i]);
      const auto label = static_cast<int64_t>(labels[i]);
      if (!ignored && label >= NumClasses(*this))
        return InvalidArgument("'", image.path, "': label ", label, " of ", NumClasses(*this),
                               " classes");
      out->label_map[i] = static_cast<int32_t>(ignored ? kIgnoredLabel : label);
    }
    return OkStatus();
  }

  std::vector<LabelledImage> images_;
  const ImageWindowOptions options_;
  int64_t tiles_ = 0;
  double area_ = 0;
  std::vector<std::string> class_names_;
  Fingerprint hash_;
};

}  // namespace

Result<std::unique_ptr<SampleSource>> OpenImageWindows(const std::string& folder,
                                                       const ImageWindowOptions& options) {
  if (options.rows < 1 || options.cols < 1 || options.windows < 0)
    return InvalidArgument("windows of ", options.rows, " x ", options.cols, ", ", options.windows,
                           " in an epoch");
  MSRT_ASSIGN_OR_RETURN(const auto image_files, FilesByStem(folder + "/images"));
  MSRT_ASSIGN_OR_RETURN(const auto label_files, FilesByStem(folder + "/labels"));
  std::vector<LabelledImage> images;
  for (const auto& [stem, path] : image_files) {
    const auto labels = label_files.find(stem);
    if (labels == label_files.end())
      return NotFound("image '", path, "' has no labels: there is no file '", stem, ".*' in '",
                      folder, "/labels'");
    MSRT_ASSIGN_OR_RETURN(LabelledImage pair, OpenPair(path, labels->second, options));
    if (!images.empty() && images[0].pixels->info().channels != pair.pixels->info().channels)
      return InvalidArgument("image '", path, "' has ", pair.pixels->info().channels,
                             " channels, others have ", images[0].pixels->info().channels);
    images.push_back(std::move(pair));
  }
  auto source = std::make_unique<ImageWindows>(std::move(images), options);
  MSRT_RETURN_IF_ERROR(source->CountClasses());
  return std::unique_ptr<SampleSource>(std::move(source));
}

}  // namespace msrt
