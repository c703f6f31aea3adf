// The description of an image and of windows in it. An image has channels, rows and columns of one
// element type; a window is a box of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/dtype.h"
#include "core/image/files/geo_reference.h"

namespace msrt {

// The element types of images.
inline constexpr DTypeSet kImageTypes{DType::kU8,  DType::kI8,  DType::kU16, DType::kI16,
                                      DType::kU32, DType::kI32, DType::kF32, DType::kF64};

// The colour of a class or of an index, 16 bits each.
struct PaletteEntry {
  uint16_t red = 0, green = 0, blue = 0;
  bool operator==(const PaletteEntry&) const = default;
};

struct ImageInfo {
  int64_t channels = 1, height = 0, width = 0;
  DType dtype = DType::kU8;
  std::optional<double> no_data = {};      // the value of pixels without content
  GeoReference geo = {};                   // of the chosen level
  std::vector<PaletteEntry> palette = {};  // non-empty: the values are indices of colours
  int levels = 1;                          // of the pyramid in the file; level 0 is the largest
  std::string format = {};                 // "TIFF"
};

// Rows [row, row + rows) x columns [col, col + cols) of channels [channel, channel + channels).
struct ImageWindow {
  int64_t row = 0, col = 0, rows = 0, cols = 0;
  int64_t channel = 0, channels = 0;  // 0 channels: all from `channel` on
};

// Memory for a window: channel after channel, row after row, the elements of a row adjacent.
// Strides are in elements.
struct PixelBuffer {
  void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t channel_stride = 0, row_stride = 0;
};
struct ConstPixelBuffer {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t channel_stride = 0, row_stride = 0;
};

inline int64_t ElementBytes(DType type) { return BitsOf(type) / 8; }

// Requires positive sizes, an element type of images and a number of bytes that fits in 63 bits.
Status CheckImageInfo(const ImageInfo& info);

// Requires that the window is within the image and not empty, and returns it with its number of
// channels filled in.
Result<ImageWindow> CheckWindow(const ImageInfo& info, ImageWindow window);

// Requires that rows and channels of the buffer do not overlap and that its extent fits in 63 bits.
Status CheckBuffer(const ImageWindow& window, const ConstPixelBuffer& buffer);

// All of this for a window that is written: it has all channels, in the image's element type.
Result<ImageWindow> CheckPixels(const ImageInfo& info, const ImageWindow& window,
                                const ConstPixelBuffer& pixels);

}  // namespace msrt
