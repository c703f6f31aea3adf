#include <algorithm>
#include <array>

#include "core/image/files/block_source.h"
#include "core/image/files/gdal_reader.h"
#include "core/image/files/image_file.h"
#include "core/image/files/image_module.h"
#include "core/image/files/npy_source.h"
#include "core/image/files/openslide_reader.h"
#include "core/image/files/pixel_convert.h"

namespace msrt {
namespace {

enum class Format { kUnknown, kTiff, kPng, kJpeg, kNpy };

Result<Format> DetectFormat(const std::string& path) {
  MSRT_ASSIGN_OR_RETURN(const ImageFile file, ImageFile::OpenForReading(path));
  MSRT_ASSIGN_OR_RETURN(const int64_t bytes, file.Bytes());
  std::array<char, 8> begin{};
  const auto count = static_cast<size_t>(std::min<int64_t>(bytes, begin.size()));
  MSRT_RETURN_IF_ERROR(file.Read(0, std::as_writable_bytes(std::span(begin)).first(count)));
  const std::string_view text(begin.data(), count);
  using std::string_view_literals::operator""sv;
  for (const std::string_view magic : {"II*\0"sv, "MM\0*"sv, "II+\0"sv, "MM\0+"sv}) {
    if (text.starts_with(magic)) return Format::kTiff;
  }
  if (text.starts_with("\x89PNG")) return Format::kPng;
  if (text.starts_with("\xFF\xD8\xFF")) return Format::kJpeg;
  if (text.starts_with("\x93NUMPY")) return Format::kNpy;
  return Format::kUnknown;
}

Result<std::unique_ptr<ImageSource>> OpenWith(OpenCodec open, const std::string& path,
                                              const OpenOptions& options) {
  const CodecOptions codec_options{options.level, options.page, options.max_block_bytes};
  Result<std::unique_ptr<BlockReader>> reader = open(path, codec_options);
  if (!reader.ok()) return std::move(reader).status().Within(path);
  return MakeBlockSource(
      path, *std::move(reader), [open, path, codec_options] { return open(path, codec_options); },
      options);
}

Result<std::unique_ptr<ImageSource>> OpenWithModule(Format format, const std::string& path,
                                                    const OpenOptions& options) {
  Result<const ImageCodecs*> codecs = LoadImageCodecs();
  if (!codecs.ok()) return std::move(codecs).status().Within(path);
  const OpenCodec open = format == Format::kTiff  ? (*codecs)->open_tiff
                         : format == Format::kPng ? (*codecs)->open_png
                                                  : (*codecs)->open_jpeg;
  if (open == nullptr)
    return Unsupported(path,
                       ": msrt's image module was built without this format: build it where "
                       "libtiff 4.5, libpng and libjpeg are installed");
  if (format != Format::kTiff && (options.level != 0 || options.page != 0))
    return NotFound(path, ": a PNG or JPEG has one page and one level, 0");
  return OpenWith(open, path, options);
}

// Tries the readers that may be installed. `reason` is why msrt's own do not read the file.
Result<std::unique_ptr<ImageSource>> OpenWithInstalled(const std::string& path,
                                                       const OpenOptions& options, Status reason) {
  if (!options.use_installed_readers) return reason;
  std::string missing, failed;
  const auto attempt = [&](bool installed, std::string_view package,
                           OpenCodec open) -> std::unique_ptr<ImageSource> {
    if (!installed) {
      StrAppend(&missing, missing.empty() ? "" : ", ", package);
      return nullptr;
    }
    Result<std::unique_ptr<ImageSource>> source = OpenWith(open, path, options);
    if (source.ok()) return *std::move(source);
    StrAppend(&failed, "; ", source.status().message());
    return nullptr;
  };
  if (auto source = attempt(OpenSlideIsInstalled(), "libopenslide0", OpenSlideBlocks))
    return source;
  if (auto source = attempt(GdalIsInstalled(), "libgdal32", OpenGdalBlocks)) return source;
  if (missing.empty()) return MakeStatus(reason.code(), reason.message(), failed);
  return MakeStatus(reason.code(), reason.message(), failed, "; not installed: OpenSlide or GDAL, ",
                    "which read more formats (Debian packages ", missing, ")");
}

class CallbackSource final : public ImageSource {
 public:
  CallbackSource(const ImageInfo& info, ReadWindow read) : info_(info), read_(std::move(read)) {}
  const ImageInfo& info() const override { return info_; }
  Status Read(const ImageWindow& asked, const PixelBuffer& out) override {
    MSRT_ASSIGN_OR_RETURN(const ImageWindow window, CheckWindow(info_, asked));
    if (out.dtype != info_.dtype && out.dtype != DType::kF32)
      return InvalidArgument("the application's pixels are read as ", info_.dtype,
                             " or f32, not as ", out.dtype);
    MSRT_RETURN_IF_ERROR(
        CheckBuffer(window, {out.data, out.dtype, out.channel_stride, out.row_stride}));
    return out.dtype == info_.dtype ? read_(window, out) : ReadAsFloat(window, out);
  }

 private:
  // Row by row, so that the pixels of the application take little memory.
  Status ReadAsFloat(const ImageWindow& window, const PixelBuffer& out) {
    const int64_t bytes = ElementBytes(info_.dtype);
    constexpr int64_t kBatchBytes = 1 << 20;
    const int64_t batch = std::clamp<int64_t>(kBatchBytes / (window.cols * bytes), 1, window.rows);
    std::vector<std::byte> pixels(static_cast<size_t>(batch * window.cols * bytes));
    for (int64_t c = 0; c < window.channels; ++c) {
      for (int64_t row = 0; row < window.rows; row += batch) {
        const int64_t rows = std::min(batch, window.rows - row);
        MSRT_RETURN_IF_ERROR(
            read_({window.row + row, window.col, rows, window.cols, window.channel + c, 1},
                  {pixels.data(), info_.dtype, rows * window.cols, window.cols}));
        for (int64_t r = 0; r < rows; ++r) {
          float* const to =
              static_cast<float*>(out.data) + c * out.channel_stride + (row + r) * out.row_stride;
          ConvertPixels(pixels.data() + r * window.cols * bytes, info_.dtype, 1,
                        reinterpret_cast<std::byte*>(to), DType::kF32, window.cols);
        }
      }
    }
    return OkStatus();
  }

  const ImageInfo info_;
  const ReadWindow read_;
};

}  // namespace

Result<std::unique_ptr<ImageSource>> OpenImage(const std::string& path,
                                               const OpenOptions& options) {
  MSRT_ASSIGN_OR_RETURN(const Format format, DetectFormat(path));
  if (format == Format::kNpy) {
    if (options.level != 0 || options.page != 0)
      return NotFound(path, ": a .npy file has one page and one level, 0");
    return OpenNpy(path);
  }
  const bool is_slide = options.use_installed_readers && HasSlideExtension(path);
  if (is_slide && OpenSlideIsInstalled()) {
    Result<std::unique_ptr<ImageSource>> slide = OpenWith(OpenSlideBlocks, path, options);
    if (slide.ok() || slide.status().code() == Code::kNotFound) return slide;
  }
  if (format == Format::kUnknown)
    return OpenWithInstalled(
        path, options,
        Unsupported(path, ": the file is none of TIFF, PNG, JPEG and .npy, by its first bytes"));
  Result<std::unique_ptr<ImageSource>> source = OpenWithModule(format, path, options);
  if (source.ok() || source.status().code() != Code::kUnsupported) return source;
  return OpenWithInstalled(path, options, std::move(source).status());
}

Result<std::unique_ptr<ImageSource>> MakeCallbackSource(const ImageInfo& info, ReadWindow read) {
  MSRT_RETURN_IF_ERROR(CheckImageInfo(info));
  return std::unique_ptr<ImageSource>(std::make_unique<CallbackSource>(info, std::move(read)));
}

}  // namespace msrt
