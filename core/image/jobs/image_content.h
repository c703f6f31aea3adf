// Which pixels of a result have content: where a mask is not 0 and the image is not its no-data
// value. A pixel of the result belongs to the pixel of the mask and of the image at its centre.
#pragma once

#include <memory>
#include <vector>

#include "core/image/files/image_source.h"

namespace msrt {

// Used by one thread at a time. Both sources may be null; the image is a source of its own, because
// its rows are read at other times than those for the model.
class ImageContent {
 public:
  // `bands` are the channels of the image that count; the image must have a no-data value.
  ImageContent(std::shared_ptr<ImageSource> mask, std::shared_ptr<ImageSource> image,
               std::vector<int64_t> bands)
      : mask_(std::move(mask)), image_(std::move(image)), bands_(std::move(bands)) {}

  bool empty() const { return mask_ == nullptr && image_ == nullptr; }
  int64_t cache_bytes() const;

  // Returns, for each pixel of the window of a result of height x width, whether it has content.
  Result<std::vector<uint8_t>> Read(const ImageWindow& window, int64_t height, int64_t width);
  // Returns whether some pixel of the window has content.
  Result<bool> Any(const ImageWindow& window, int64_t height, int64_t width);

 private:
  // Clears the pixels of one row of the result that have no content.
  Status ClearByMask(int64_t row, const ImageWindow& window, int64_t height, int64_t width,
                     uint8_t* content);
  Status ClearByImage(int64_t row, const ImageWindow& window, int64_t height, int64_t width,
                      uint8_t* content);
  // Reads the part of a source's row that the row of the result belongs to, as f32.
  Status ReadRow(ImageSource& source, int64_t channel, int64_t row, const ImageWindow& window,
                 int64_t height, int64_t width);

  const std::shared_ptr<ImageSource> mask_, image_;
  const std::vector<int64_t> bands_;
  std::vector<float> pixels_;       // of one row of a source
  std::vector<uint8_t> all_empty_;  // of one row of the result
  int64_t first_col_ = 0;           // of pixels_, in the source
};

// Returns the pixel of an extent of `from` at the centre of pixel `at` of an extent of `to`.
inline int64_t PixelAt(int64_t at, int64_t to, int64_t from) {
  return static_cast<int64_t>((static_cast<__int128>(2 * at + 1) * from) / (2 * to));
}

}  // namespace msrt
