#include "core/image/jobs/image_content.h"

#include <algorithm>
#include <cmath>

#include "core/base/checked_math.h"

namespace msrt {
namespace {

// The pixel of a source, of `extent` pixels along the `image_extent` of the image, at this place.
int64_t PixelAt(double place, int64_t extent, int64_t image_extent) {
  const double at = (place + 0.5) * static_cast<double>(extent) / static_cast<double>(image_extent);
  return std::clamp<int64_t>(static_cast<int64_t>(std::floor(at)), 0, extent - 1);
}

}  // namespace

void ImageContent::SetResults(std::vector<ResultGrid> grids, int64_t image_height,
                              int64_t image_width, int64_t keep_rows) {
  max_bands_ =
      static_cast<size_t>(CeilDiv(keep_rows, kBandRows)) * std::max<size_t>(1, grids.size());
  grids_ = std::move(grids);
  image_height_ = image_height, image_width_ = image_width;
}

int64_t ImageContent::BytesOf(int64_t width, int64_t keep_rows) {
  // One more is being read.
  return (CeilDiv(keep_rows, kBandRows) + 1) * CeilDiv(width * kBandRows, 8);
}

int64_t ImageContent::cache_bytes() const {
  return (mask_ == nullptr ? 0 : mask_->cache_bytes()) +
         (image_ == nullptr ? 0 : image_->cache_bytes());
}

Status ImageContent::ReadRow(ImageSource& source, int64_t channel, const ResultGrid& grid,
                             int64_t row) {
  const ImageInfo& info = source.info();
  pixels_.resize(static_cast<size_t>(info.width));
  const int64_t at = PixelAt(grid.coordinates.rows.At(row), info.height, image_height_);
  return source.Read({at, 0, 1, info.width, channel, 1},
                     {pixels_.data(), DType::kF32, info.width, info.width});
}

std::vector<int64_t> ImageContent::ColumnsOf(const ResultGrid& grid,
                                             const ImageSource& source) const {
  std::vector<int64_t> columns(static_cast<size_t>(grid.width));
  for (int64_t c = 0; c < grid.width; ++c)
    columns[static_cast<size_t>(c)] =
        PixelAt(grid.coordinates.columns.At(c), source.info().width, image_width_);
  return columns;
}

Status ImageContent::ClearByMask(const ResultGrid& grid, int64_t row, uint8_t* content) {
  MSRT_RETURN_IF_ERROR(ReadRow(*mask_, 0, grid, row));
  for (size_t c = 0; c < mask_columns_.size(); ++c) {
    if (pixels_[static_cast<size_t>(mask_columns_[c])] == 0) content[c] = 0;
  }
  return OkStatus();
}

Status ImageContent::ClearByImage(const ResultGrid& grid, int64_t row, uint8_t* content) {
  const auto no_data = static_cast<float>(*image_->info().no_data);
  all_empty_.assign(static_cast<size_t>(grid.width), 1);
  for (const int64_t band : bands_) {
    MSRT_RETURN_IF_ERROR(ReadRow(*image_, band, grid, row));
    for (size_t c = 0; c < image_columns_.size(); ++c) {
      const float pixel = pixels_[static_cast<size_t>(image_columns_[c])];
      const bool empty = std::isnan(no_data) ? std::isnan(pixel) : pixel == no_data;
      if (!empty) all_empty_[c] = 0;
    }
  }
  for (size_t c = 0; c < all_empty_.size(); ++c) {
    if (all_empty_[c] != 0) content[c] = 0;
  }
  return OkStatus();
}

Status ImageContent::ReadBand(Band* band) {
  const ResultGrid& grid = grids_[band->result];
  const int64_t first = band->index * kBandRows;
  const int64_t rows = std::min(kBandRows, grid.height - first);
  if (mask_ != nullptr) mask_columns_ = ColumnsOf(grid, *mask_);
  if (image_ != nullptr) image_columns_ = ColumnsOf(grid, *image_);
  band->content.assign(static_cast<size_t>(rows * grid.width), true);
  std::vector<uint8_t> row(static_cast<size_t>(grid.width));
  for (int64_t r = 0; r < rows; ++r) {
    std::fill(row.begin(), row.end(), uint8_t{1});
    if (mask_ != nullptr) MSRT_RETURN_IF_ERROR(ClearByMask(grid, first + r, row.data()));
    if (image_ != nullptr) MSRT_RETURN_IF_ERROR(ClearByImage(grid, first + r, row.data()));
    for (size_t c = 0; c < row.size(); ++c)
      band->content[static_cast<size_t>(r * grid.width) + c] = row[c] != 0;
  }
  return OkStatus();
}

Result<const ImageContent::Band*> ImageContent::BandAt(size_t result, int64_t index) {
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Band& band) {
    return band.result == result && band.index == index;
  });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
    return &kept_.front();
  }
  Band band{result, index};
  MSRT_RETURN_IF_ERROR(ReadBand(&band));
  while (kept_.size() >= max_bands_) kept_.pop_back();
  kept_.push_front(std::move(band));
  return &kept_.front();
}

Result<std::vector<uint8_t>> ImageContent::Read(size_t result, const ImageWindow& window) {
  const int64_t width = grids_[result].width;
  std::vector<uint8_t> content(static_cast<size_t>(window.rows * window.cols));
  const std::lock_guard lock(mutex_);
  for (int64_t r = 0; r < window.rows; ++r) {
    MSRT_ASSIGN_OR_RETURN(const Band* band, BandAt(result, (window.row + r) / kBandRows));
    const auto from = band->content.begin() + (window.row + r) % kBandRows * width + window.col;
    std::copy(from, from + window.cols, content.begin() + r * window.cols);
  }
  return content;
}

Result<bool> ImageContent::Any(size_t result, const ImageWindow& window) {
  const int64_t width = grids_[result].width;
  const std::lock_guard lock(mutex_);
  for (int64_t row = window.row; row < window.row + window.rows; ++row) {
    MSRT_ASSIGN_OR_RETURN(const Band* band, BandAt(result, row / kBandRows));
    const auto from = band->content.begin() + row % kBandRows * width + window.col;
    if (std::find(from, from + window.cols, true) != from + window.cols) return true;
  }
  return false;
}

}  // namespace msrt
