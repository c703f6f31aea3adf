#include "core/train/data/packed_images.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/base/io.h"

namespace msrt {
namespace {

namespace fs = std::filesystem;

// Bytes of images of equal sizes, in memory-mapped files.
class PackedImages final : public SampleSource {
 public:
  struct Image {
    const std::byte* pixels;
    int64_t label;
  };

  PackedImages(std::string what, int64_t channels, int64_t rows, int64_t cols)
      : what_(std::move(what)), channels_(channels), rows_(rows), cols_(cols) {}

  void Add(Bytes file) { files_.push_back(std::move(file)); }
  void Add(const Image& image) {
    images_.push_back(image);
    hash_.Add(image.label);
  }
  void SetClassNames(std::vector<std::string> names) {
    class_names_ = std::move(names);
    for (const std::string& name : class_names_) hash_.Add(name);
  }
  int64_t MaxLabel() const {
    int64_t max = -1;
    for (const Image& image : images_) max = std::max(max, image.label);
    return max;
  }

  int64_t samples() const override { return static_cast<int64_t>(images_.size()); }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::string NameOf(int64_t index) const override { return StrCat(what_, " image ", index); }
  Status Read(int64_t index, SampleRandom, Picture* out) const override {
    const Image& image = images_[static_cast<size_t>(index)];
    out->Resize(channels_, rows_, cols_);
    out->label = image.label;
    out->label_map.clear();
    const auto* const pixels = reinterpret_cast<const uint8_t*>(image.pixels);
    std::copy_n(pixels, channels_ * rows_ * cols_, out->pixels.data());
    return OkStatus();
  }
  uint64_t fingerprint() const override { return hash_.value(); }

 private:
  const std::string what_;
  const int64_t channels_, rows_, cols_;
  std::vector<Bytes> files_;
  std::vector<Image> images_;
  std::vector<std::string> class_names_;
  Fingerprint hash_;
};

std::vector<std::string> ReadLines(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

// Sets the names, or numbers where there are none. There are at least `least` classes.
Status NameClasses(std::vector<std::string> names, int64_t least, const std::string& folder,
                   PackedImages* images) {
  const int64_t max = images->MaxLabel();
  if (names.empty()) {
    for (int64_t c = 0; c < std::max(least, max + 1); ++c) names.push_back(StrCat(c));
  }
  if (max >= static_cast<int64_t>(names.size()))
    return InvalidArgument("folder '", folder, "': an image has label ", max, " of ", names.size(),
                           " classes");
  images->SetClassNames(std::move(names));
  return OkStatus();
}

constexpr int64_t kCifarSide = 32, kCifarPixels = 3 * kCifarSide * kCifarSide;

// `labels` is the number of label bytes before the pixels, of which the last counts.
Status AddCifarFile(const std::string& path, size_t labels, PackedImages* images) {
  MSRT_ASSIGN_OR_RETURN(Bytes file, DefaultIo()->MapFile(path));
  const size_t record = labels + static_cast<size_t>(kCifarPixels);
  if (file.data.empty() || file.data.size() % record != 0)
    return InvalidArgument("file '", path, "' has ", file.data.size(),
                           " bytes, which is no multiple of ", record,
                           ": it is cut off, or not CIFAR's binary version");
  for (size_t at = 0; at < file.data.size(); at += record) {
    images->Add(PackedImages::Image{file.data.data() + at + labels,
                                    static_cast<int64_t>(file.data[at + labels - 1])});
  }
  images->Add(std::move(file));
  return OkStatus();
}

struct IdxFile {
  Bytes file;
  std::vector<int64_t> dims;
  std::span<const std::byte> data;
};

Result<IdxFile> ReadIdx(const std::string& path, size_t rank) {
  MSRT_ASSIGN_OR_RETURN(Bytes file, DefaultIo()->MapFile(path));
  const auto byte = [&](size_t i) { return static_cast<int64_t>(file.data[i]); };
  const size_t header = 4 + 4 * rank;
  constexpr int64_t kUnsignedBytes = 8;
  if (file.data.size() < header || byte(0) != 0 || byte(1) != 0 || byte(2) != kUnsignedBytes ||
      byte(3) != static_cast<int64_t>(rank))
    return InvalidArgument("file '", path, "' is no idx file of bytes with ", rank,
                           " dims; unpack it first if it is compressed");
  IdxFile idx{std::move(file), {}, {}};
  int64_t elements = 1;
  for (size_t d = 0; d < rank; ++d) {
    const size_t at = 4 + 4 * d;
    const int64_t dim = byte(at) << 24 | byte(at + 1) << 16 | byte(at + 2) << 8 | byte(at + 3);
    constexpr int64_t kMaxBytes = int64_t{1} << 40;
    if (dim < 1 || elements > kMaxBytes / dim)
      return InvalidArgument("file '", path, "': dim ", d, " is ", dim);
    idx.dims.push_back(dim);
    elements *= dim;
  }
  idx.data = idx.file.data.subspan(header);
  if (idx.data.size() != static_cast<size_t>(elements))
    return InvalidArgument("file '", path, "' has ", idx.data.size(), " bytes of data, its dims ",
                           std::span<const int64_t>(idx.dims), " say ", elements);
  return idx;
}

// MNIST's files are also found under names with a dot, as some archives unpack them.
std::string FindIdx(const std::string& folder, const std::string& stem, int rank) {
  const std::string dotted = StrCat(folder, "/", stem, ".idx", rank, "-ubyte");
  return fs::exists(dotted) ? dotted : StrCat(folder, "/", stem, "-idx", rank, "-ubyte");
}

}  // namespace

bool IsCifarFolder(const std::string& folder) {
  return fs::exists(folder + "/data_batch_1.bin") || fs::exists(folder + "/test_batch.bin") ||
         fs::exists(folder + "/train.bin") || fs::exists(folder + "/test.bin");
}

Result<std::unique_ptr<SampleSource>> OpenCifar(const std::string& folder, DataSplit split) {
  const bool train = split == DataSplit::kTrain;
  const bool hundred = fs::exists(folder + "/train.bin") || fs::exists(folder + "/test.bin");
  auto images = std::make_unique<PackedImages>(StrCat(folder, train ? ": training" : ": test"), 3,
                                               kCifarSide, kCifarSide);
  if (hundred) {
    MSRT_RETURN_IF_ERROR(
        AddCifarFile(folder + (train ? "/train.bin" : "/test.bin"), 2, images.get()));
  } else if (train) {
    for (int part = 1; part <= 5; ++part) {
      const std::string path = StrCat(folder, "/data_batch_", part, ".bin");
      if (part == 1 || fs::exists(path)) MSRT_RETURN_IF_ERROR(AddCifarFile(path, 1, images.get()));
    }
  } else {
    MSRT_RETURN_IF_ERROR(AddCifarFile(folder + "/test_batch.bin", 1, images.get()));
  }
  MSRT_RETURN_IF_ERROR(
      NameClasses(ReadLines(folder + (hundred ? "/fine_label_names.txt" : "/batches.meta.txt")),
                  hundred ? 100 : 10, folder, images.get()));
  return std::unique_ptr<SampleSource>(std::move(images));
}

bool IsMnistFolder(const std::string& folder) {
  return fs::exists(FindIdx(folder, "train-images", 3)) ||
         fs::exists(FindIdx(folder, "t10k-images", 3));
}

Result<std::unique_ptr<SampleSource>> OpenMnist(const std::string& folder, DataSplit split) {
  const std::string stem = split == DataSplit::kTrain ? "train" : "t10k";
  MSRT_ASSIGN_OR_RETURN(const IdxFile pixels, ReadIdx(FindIdx(folder, stem + "-images", 3), 3));
  MSRT_ASSIGN_OR_RETURN(const IdxFile labels, ReadIdx(FindIdx(folder, stem + "-labels", 1), 1));
  if (pixels.dims[0] != labels.dims[0])
    return InvalidArgument("folder '", folder, "' has ", pixels.dims[0], " images and ",
                           labels.dims[0], " labels");
  auto images =
      std::make_unique<PackedImages>(StrCat(folder, ": ", stem), 1, pixels.dims[1], pixels.dims[2]);
  const auto image_bytes = static_cast<size_t>(pixels.dims[1] * pixels.dims[2]);
  for (size_t i = 0; i < labels.data.size(); ++i) {
    images->Add(PackedImages::Image{pixels.data.data() + i * image_bytes,
                                    static_cast<int64_t>(labels.data[i])});
  }
  images->Add(pixels.file);
  MSRT_RETURN_IF_ERROR(NameClasses({}, 10, folder, images.get()));
  return std::unique_ptr<SampleSource>(std::move(images));
}

}  // namespace msrt
