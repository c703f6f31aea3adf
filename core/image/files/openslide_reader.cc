#include "core/image/files/openslide_reader.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/utf8.h"
#include "core/image/files/installed_library.h"

namespace msrt {
namespace {

constexpr int64_t kBlock = 512;
// Of decoded tiles, for each open slide. It is the default of OpenSlide, before version 4 always.
constexpr int64_t kSlideCacheBytes = int64_t{32} << 20;
constexpr std::string_view kExtensions[] = {".svs", ".ndpi", ".mrxs", ".scn",
                                            ".vms", ".vmu",  ".bif",  ".svslide"};

// The functions of OpenSlide 3.4 and later that are used.
struct OpenSlide {
  const char* (*detect_vendor)(const char*);
  void* (*open)(const char*);
  void (*close)(void*);
  const char* (*get_error)(void*);
  int (*level_count)(void*);
  void (*level_dimensions)(void*, int, int64_t*, int64_t*);
  double (*level_downsample)(void*, int);
  void (*read_region)(void*, uint32_t*, int64_t, int64_t, int, int64_t, int64_t);
  bool ok = false;
  // Of OpenSlide 4 and later; else null.
  void* (*cache_create)(size_t);
  void (*set_cache)(void*, void*);
  void (*cache_release)(void*);
};

OpenSlide LoadOpenSlide() {
  OpenSlide slide;
  InstalledLibrary library{"libopenslide.so.1", "libopenslide.so.0", "libopenslide.so"};
  library.Find("openslide_detect_vendor", &slide.detect_vendor);
  library.Find("openslide_open", &slide.open);
  library.Find("openslide_close", &slide.close);
  library.Find("openslide_get_error", &slide.get_error);
  library.Find("openslide_get_level_count", &slide.level_count);
  library.Find("openslide_get_level_dimensions", &slide.level_dimensions);
  library.Find("openslide_get_level_downsample", &slide.level_downsample);
  library.Find("openslide_read_region", &slide.read_region);
  slide.ok = library.ok();
  library.Find("openslide_cache_create", &slide.cache_create);
  library.Find("openslide_set_cache", &slide.set_cache);
  library.Find("openslide_cache_release", &slide.cache_release);
  if (!library.ok()) slide.cache_create = nullptr;
  return slide;
}

const OpenSlide& GetOpenSlide() {
  static const OpenSlide slide = LoadOpenSlide();
  return slide;
}

class SlideBlockReader final : public BlockReader {
 public:
  ~SlideBlockReader() override {
    if (slide_ != nullptr) GetOpenSlide().close(slide_);
  }

  const ImageInfo& info() const override { return info_; }
  const BlockLayout& layout() const override { return layout_; }
  int64_t cache_bytes() const override { return kSlideCacheBytes; }

  Status Open(const std::string& path, const CodecOptions& options) {
    const OpenSlide& api = GetOpenSlide();
    if (api.detect_vendor(path.c_str()) == nullptr)
      return InvalidArgument("OpenSlide does not recognise the file");
    if (options.page != 0)
      return NotFound("there is no page ", options.page, ": a slide has page 0 alone");
    slide_ = api.open(path.c_str());
    if (slide_ == nullptr) return InvalidArgument("OpenSlide does not recognise the file");
    MSRT_RETURN_IF_ERROR(Check());
    if (api.cache_create != nullptr) {
      void* const cache = api.cache_create(kSlideCacheBytes);
      api.set_cache(slide_, cache);  // which keeps it
      api.cache_release(cache);
    }
    level_ = options.level;
    info_.levels = api.level_count(slide_);
    if (level_ < 0 || level_ >= info_.levels)
      return NotFound("there is no level ", level_, ": the pyramid has levels 0 to ",
                      info_.levels - 1);
    api.level_dimensions(slide_, level_, &info_.width, &info_.height);
    downsample_ = api.level_downsample(slide_, level_);
    MSRT_RETURN_IF_ERROR(Check());
    info_.format = "OpenSlide";
    info_.channels = 3;
    info_.dtype = DType::kU8;
    layout_ = {std::min(kBlock, info_.height), std::min(kBlock, info_.width), false, false};
    return CheckImageInfo(info_);
  }

  // Pixels come as ARGB, multiplied by their alpha; uncovered ones are white, as on glass.
  Status ReadBlock(const BlockIndex& index, std::span<std::byte> out) override {
    const int64_t row = index.row * layout_.rows, col = index.col * layout_.cols;
    pixels_.resize(static_cast<size_t>(layout_.rows * layout_.cols));
    // Positions are those of the full resolution.
    GetOpenSlide().read_region(
        slide_, pixels_.data(), std::llround(static_cast<double>(col) * downsample_),
        std::llround(static_cast<double>(row) * downsample_), level_, layout_.cols, layout_.rows);
    MSRT_RETURN_IF_ERROR(Check());
    for (size_t i = 0; i < pixels_.size(); ++i) {
      const uint32_t pixel = pixels_[i], uncovered = 255 - (pixel >> 24);
      for (size_t c = 0; c < 3; ++c) {
        const uint32_t value = (pixel >> (16 - 8 * c) & 255) + uncovered;
        out[3 * i + c] = static_cast<std::byte>(std::min<uint32_t>(value, 255));
      }
    }
    return OkStatus();
  }

 private:
  // An error of OpenSlide is final for the handle.
  Status Check() const {
    const char* error = GetOpenSlide().get_error(slide_);
    return error == nullptr ? OkStatus() : InvalidArgument("OpenSlide: ", Printable(error));
  }

  void* slide_ = nullptr;
  int level_ = 0;
  double downsample_ = 1;
  ImageInfo info_;
  BlockLayout layout_;
  std::vector<uint32_t> pixels_;
};

}  // namespace

bool OpenSlideIsInstalled() { return GetOpenSlide().ok; }

bool HasSlideExtension(const std::string& path) {
  std::string lower = path;
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return std::any_of(std::begin(kExtensions), std::end(kExtensions),
                     [&](std::string_view end) { return lower.ends_with(end); });
}

Result<std::unique_ptr<BlockReader>> OpenSlideBlocks(const std::string& path,
                                                     const CodecOptions& options) {
  auto reader = std::make_unique<SlideBlockReader>();
  MSRT_RETURN_IF_ERROR(reader->Open(path, options));
  return std::unique_ptr<BlockReader>(std::move(reader));
}

}  // namespace msrt
