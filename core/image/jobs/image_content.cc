#include "core/image/jobs/image_content.h"

#include <algorithm>
#include <cmath>

namespace msrt {

int64_t ImageContent::cache_bytes() const {
  return (mask_ == nullptr ? 0 : mask_->cache_bytes()) +
         (image_ == nullptr ? 0 : image_->cache_bytes());
}

Status ImageContent::ReadRow(ImageSource& source, int64_t channel, int64_t row,
                             const ImageWindow& window, int64_t height, int64_t width) {
  const ImageInfo& info = source.info();
  first_col_ = PixelAt(window.col, width, info.width);
  const int64_t cols = PixelAt(window.col + window.cols - 1, width, info.width) + 1 - first_col_;
  pixels_.resize(static_cast<size_t>(cols));
  return source.Read({PixelAt(row, height, info.height), first_col_, 1, cols, channel, 1},
                     {pixels_.data(), DType::kF32, cols, cols});
}

Status ImageContent::ClearByMask(int64_t row, const ImageWindow& window, int64_t height,
                                 int64_t width, uint8_t* content) {
  MSRT_RETURN_IF_ERROR(ReadRow(*mask_, 0, row, window, height, width));
  for (int64_t c = 0; c < window.cols; ++c) {
    const int64_t col = PixelAt(window.col + c, width, mask_->info().width) - first_col_;
    if (pixels_[static_cast<size_t>(col)] == 0) content[c] = 0;
  }
  return OkStatus();
}

Status ImageContent::ClearByImage(int64_t row, const ImageWindow& window, int64_t height,
                                  int64_t width, uint8_t* content) {
  const auto no_data = static_cast<float>(*image_->info().no_data);
  all_empty_.assign(static_cast<size_t>(window.cols), 1);
  for (const int64_t band : bands_) {
    MSRT_RETURN_IF_ERROR(ReadRow(*image_, band, row, window, height, width));
    for (int64_t c = 0; c < window.cols; ++c) {
      const int64_t col = PixelAt(window.col + c, width, image_->info().width) - first_col_;
      const float pixel = pixels_[static_cast<size_t>(col)];
      const bool empty = std::isnan(no_data) ? std::isnan(pixel) : pixel == no_data;
      if (!empty) all_empty_[static_cast<size_t>(c)] = 0;
    }
  }
  for (int64_t c = 0; c < window.cols; ++c) {
    if (all_empty_[static_cast<size_t>(c)] != 0) content[c] = 0;
  }
  return OkStatus();
}

Result<std::vector<uint8_t>> ImageContent::Read(const ImageWindow& window, int64_t height,
                                                int64_t width) {
  std::vector<uint8_t> content(static_cast<size_t>(window.rows * window.cols), 1);
  for (int64_t r = 0; r < window.rows; ++r) {
    uint8_t* const row = content.data() + r * window.cols;
    if (mask_ != nullptr)
      MSRT_RETURN_IF_ERROR(ClearByMask(window.row + r, window, height, width, row));
    if (image_ != nullptr)
      MSRT_RETURN_IF_ERROR(ClearByImage(window.row + r, window, height, width, row));
  }
  return content;
}

Result<bool> ImageContent::Any(const ImageWindow& window, int64_t height, int64_t width) {
  ImageWindow row = window;
  row.rows = 1;
  for (; row.row < window.row + window.rows; ++row.row) {
    MSRT_ASSIGN_OR_RETURN(const std::vector<uint8_t> content, Read(row, height, width));
    if (std::find(content.begin(), content.end(), 1) != content.end()) return true;
  }
  return false;
}

}  // namespace msrt
