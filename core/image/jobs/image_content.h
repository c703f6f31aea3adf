// Which pixels of the results have content: where a mask is not 0 and the image is not its no-data
// value. A pixel of a result belongs to the pixel of the mask and of the image at its centre.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "core/image/executors/image_coordinates.h"
#include "core/image/files/image_source.h"

namespace msrt {

// The pixels of one result.
struct ResultGrid {
  int64_t height = 0, width = 0;
  ImageCoordinates coordinates = {};  // in the image
};

// Thread-safe after SetResults. Sources that decode from the top to the bottom are read in bands of
// rows of the whole width, so that tiles beside each other do not each begin at the top.
class ImageContent {
 public:
  static constexpr int64_t kBandRows = 64;

  // `bands` are the channels of the image that count; the image must have a no-data value. Both
  // sources may be null; the image is a source of its own, because its rows are read at other times
  // than those for the model.
  ImageContent(std::shared_ptr<ImageSource> mask, std::shared_ptr<ImageSource> image,
               std::vector<int64_t> bands)
      : mask_(std::move(mask)), image_(std::move(image)), bands_(std::move(bands)) {}

  // `image_height` and `image_width` are those of the coordinates. `keep_rows`: rows of each result
  // whose content is kept.
  void SetResults(std::vector<ResultGrid> grids, int64_t image_height, int64_t image_width,
                  int64_t keep_rows);

  bool empty() const { return mask_ == nullptr && image_ == nullptr; }
  // What the sources hold.
  int64_t cache_bytes() const;
  // What SetResults lets this object hold for a result.
  static int64_t BytesOf(int64_t width, int64_t keep_rows);

  // Returns, for each pixel of the window of a result, whether it has content.
  Result<std::vector<uint8_t>> Read(size_t result, const ImageWindow& window);
  // Returns whether some pixel of the window has content.
  Result<bool> Any(size_t result, const ImageWindow& window);

 private:
  // Rows [index * kBandRows, ...) of a result.
  struct Band {
    size_t result = 0;
    int64_t index = 0;
    std::vector<bool> content = {};  // rows x width
  };

  // Returns the band, read if it is not kept. Requires the lock.
  Result<const Band*> BandAt(size_t result, int64_t index);
  Status ReadBand(Band* band);
  // Clears the pixels of one row of the result that have no content.
  Status ClearByMask(const ResultGrid& grid, int64_t row, uint8_t* content);
  Status ClearByImage(const ResultGrid& grid, int64_t row, uint8_t* content);
  // The columns of a source that the columns of the result belong to.
  std::vector<int64_t> ColumnsOf(const ResultGrid& grid, const ImageSource& source) const;
  // Reads the row of a source that the row of the result belongs to, as f32.
  Status ReadRow(ImageSource& source, int64_t channel, const ResultGrid& grid, int64_t row);

  const std::shared_ptr<ImageSource> mask_, image_;
  const std::vector<int64_t> bands_;
  std::vector<ResultGrid> grids_;
  int64_t image_height_ = 1, image_width_ = 1;
  size_t max_bands_ = 1;
  std::mutex mutex_;                                   // protects everything below
  std::list<Band> kept_;                               // the latest first
  std::vector<float> pixels_;                          // of one row of a source
  std::vector<uint8_t> all_empty_;                     // of one row of the result
  std::vector<int64_t> mask_columns_, image_columns_;  // of the band that is read
};

}  // namespace msrt
