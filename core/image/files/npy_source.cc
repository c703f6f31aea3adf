#include "core/image/files/npy_source.h"

#include <algorithm>
#include <vector>

#include "core/image/files/image_file.h"
#include "core/image/files/npy_header.h"
#include "core/image/files/pixel_convert.h"

namespace msrt {
namespace {

constexpr int64_t kScratchBytes = 1 << 20;

void SwapElements(std::span<std::byte> data, size_t element_bytes) {
  for (size_t i = 0; i + element_bytes <= data.size(); i += element_bytes)
    std::reverse(data.begin() + static_cast<ptrdiff_t>(i),
                 data.begin() + static_cast<ptrdiff_t>(i + element_bytes));
}

class NpySource final : public ImageSource {
 public:
  NpySource(ImageFile file, NpyHeader header)
      : file_(std::move(file)), header_(std::move(header)) {}

  const ImageInfo& info() const override { return header_.info; }

  Status Read(const ImageWindow& asked, const PixelBuffer& out) override {
    Status status = ReadWindow(asked, out);
    return std::move(status).Within(file_.path());
  }

 private:
  Status ReadWindow(const ImageWindow& asked, const PixelBuffer& out) const {
    const ImageInfo& info = header_.info;
    MSRT_ASSIGN_OR_RETURN(const ImageWindow window, CheckWindow(info, asked));
    if (out.dtype != info.dtype && out.dtype != DType::kF32)
      return InvalidArgument("pixels are read as ", info.dtype, " or f32, not as ", out.dtype);
    MSRT_RETURN_IF_ERROR(
        CheckBuffer(window, {out.data, out.dtype, out.channel_stride, out.row_stride}));
    // Rows of the whole width are adjacent in the file, so several are read at once.
    const int64_t row_bytes = window.cols * ElementBytes(info.dtype);
    const int64_t batch =
        window.cols == info.width ? std::max<int64_t>(kScratchBytes / row_bytes, 1) : 1;
    std::vector<std::byte> scratch(static_cast<size_t>(row_bytes * std::min(batch, window.rows)));
    for (int64_t channel = 0; channel < window.channels; ++channel) {
      for (int64_t row = 0; row < window.rows; row += batch) {
        const int64_t rows = std::min(batch, window.rows - row);
        MSRT_RETURN_IF_ERROR(ReadRows(window, channel, row, rows, out, scratch));
      }
    }
    return OkStatus();
  }

  Status ReadRows(const ImageWindow& window, int64_t channel, int64_t row, int64_t rows,
                  const PixelBuffer& out, std::span<std::byte> scratch) const {
    const ImageInfo& info = header_.info;
    const int64_t bytes = ElementBytes(info.dtype);
    const int64_t element =
        ((window.channel + channel) * info.height + window.row + row) * info.width + window.col;
    const auto data = scratch.first(static_cast<size_t>(rows * window.cols * bytes));
    MSRT_RETURN_IF_ERROR(file_.Read(header_.data_offset + element * bytes, data));
    if (header_.swapped) SwapElements(data, static_cast<size_t>(bytes));
    auto* const to = static_cast<std::byte*>(out.data);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t target = channel * out.channel_stride + (row + i) * out.row_stride;
      ConvertPixels(data.data() + i * window.cols * bytes, info.dtype, 1,
                    to + target * ElementBytes(out.dtype), out.dtype, window.cols);
    }
    return OkStatus();
  }

  const ImageFile file_;
  const NpyHeader header_;
};

}  // namespace

Result<std::unique_ptr<ImageSource>> OpenNpy(const std::string& path) {
  MSRT_ASSIGN_OR_RETURN(ImageFile file, ImageFile::OpenForReading(path));
  MSRT_ASSIGN_OR_RETURN(const int64_t bytes, file.Bytes());
  std::vector<std::byte> begin(
      static_cast<size_t>(std::min<int64_t>(bytes, kMaxNpyHeaderBytes + 12)));
  MSRT_RETURN_IF_ERROR(file.Read(0, begin));
  Result<NpyHeader> header = ParseNpyHeader(begin, bytes);
  if (!header.ok()) return std::move(header).status().Within(path);
  return std::unique_ptr<ImageSource>(
      std::make_unique<NpySource>(std::move(file), *std::move(header)));
}

}  // namespace msrt
