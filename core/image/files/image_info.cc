#include "core/image/files/image_info.h"

#include <algorithm>
#include <array>

#include "core/base/checked_math.h"

namespace msrt {

Status CheckImageInfo(const ImageInfo& info) {
  if (info.channels < 1 || info.height < 1 || info.width < 1)
    return InvalidArgument("an image of ", info.channels, " x ", info.height, " x ", info.width,
                           " has no pixels: channels, height and width must be at least 1");
  if (!kImageTypes.Has(info.dtype))
    return Unsupported("an image of element type ", info.dtype, ": use ", kImageTypes.Names());
  int64_t bytes;
  const std::array<int64_t, 4> sizes{info.channels, info.height, info.width,
                                     ElementBytes(info.dtype)};
  if (!CheckedProduct(sizes, &bytes))
    return LimitExceeded("an image of ", info.channels, " x ", info.height, " x ", info.width,
                         " is larger than any memory");
  return OkStatus();
}

Result<ImageWindow> CheckWindow(const ImageInfo& info, ImageWindow window) {
  if (window.channels == 0) window.channels = info.channels - window.channel;
  const auto fits = [](int64_t begin, int64_t length, int64_t size) {
    return begin >= 0 && length > 0 && begin < size && length <= size - begin;
  };
  if (!fits(window.row, window.rows, info.height) || !fits(window.col, window.cols, info.width) ||
      !fits(window.channel, window.channels, info.channels))
    return InvalidArgument("window of channels ", window.channel, " + ", window.channels, ", rows ",
                           window.row, " + ", window.rows, ", columns ", window.col, " + ",
                           window.cols, " is not within the image of ", info.channels, " x ",
                           info.height, " x ", info.width);
  return window;
}

Status CheckBuffer(const ImageWindow& window, const ConstPixelBuffer& buffer) {
  if (buffer.data == nullptr) return InvalidArgument("the memory for a window is null");
  int64_t channel_extent, bytes;
  if (buffer.row_stride < window.cols ||
      !CheckedMul(buffer.row_stride, window.rows, &channel_extent) ||
      (window.channels > 1 && buffer.channel_stride < channel_extent) ||
      !CheckedMul(std::max(buffer.channel_stride, channel_extent), window.channels, &bytes) ||
      !CheckedMul(bytes, int64_t{8}, &bytes))
    return InvalidArgument("strides of ", buffer.channel_stride, " and ", buffer.row_stride,
                           " elements do not fit a window of ", window.channels, " x ", window.rows,
                           " x ", window.cols);
  return OkStatus();
}

Result<ImageWindow> CheckPixels(const ImageInfo& info, const ImageWindow& asked,
                                const ConstPixelBuffer& pixels) {
  MSRT_ASSIGN_OR_RETURN(const ImageWindow window, CheckWindow(info, asked));
  if (window.channels != info.channels)
    return InvalidArgument("a window is written with all ", info.channels, " channels, not ",
                           window.channels);
  if (pixels.dtype != info.dtype)
    return InvalidArgument("pixels are written as ", info.dtype, ", not as ", pixels.dtype);
  MSRT_RETURN_IF_ERROR(CheckBuffer(window, pixels));
  return window;
}

}  // namespace msrt
