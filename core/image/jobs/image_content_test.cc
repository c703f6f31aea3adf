// Content of results: sources that decode from top to bottom are read in that order.
#include "core/image/jobs/image_content.h"

#include <gtest/gtest.h>

namespace msrt::testing {
namespace {

// A mask that is 0 in every third row and column. Counts how often a read goes back, which makes a
// PNG decode all rows from the top.
class SequentialMask final : public ImageSource {
 public:
  SequentialMask(int64_t height, int64_t width) { info_.height = height, info_.width = width; }
  const ImageInfo& info() const override { return info_; }
  Status Read(const ImageWindow& window, const PixelBuffer& out) override {
    constexpr int64_t kKeptRows = 16;
    if (window.row + kKeptRows < next_row_) ++times_from_top;
    next_row_ = window.row + window.rows;
    for (int64_t c = 0; c < window.cols; ++c)
      static_cast<float*>(out.data)[c] = IsSet(window.row, window.col + c) ? 1.0f : 0.0f;
    return OkStatus();
  }
  static bool IsSet(int64_t row, int64_t col) { return row % 3 != 0 && col % 3 != 0; }

  int times_from_top = 0;

 private:
  ImageInfo info_;
  int64_t next_row_ = 0;
};

TEST(ImageContent, ARowOfTilesReadsAMaskOnce) {
  constexpr int64_t kHeight = 500, kWidth = 300, kTile = 90;
  const auto mask = std::make_shared<SequentialMask>(kHeight, kWidth);
  ImageContent content(mask, nullptr, {0});
  content.SetResults({{kHeight, kWidth, {}}}, kHeight, kWidth, kTile + 2 * ImageContent::kBandRows);
  for (int64_t row = 0; row < kHeight; row += kTile) {
    for (int64_t col = 0; col < kWidth; col += kTile) {
      const ImageWindow tile{row, col, std::min(kTile, kHeight - row),
                             std::min(kTile, kWidth - col)};
      EXPECT_EQ(content.Any(0, tile).ok() && *content.Any(0, tile), true);
      const auto pixels = content.Read(0, tile);
      ASSERT_TRUE(pixels.ok());
      for (int64_t r = 0; r < tile.rows; ++r) {
        for (int64_t c = 0; c < tile.cols; ++c)
          ASSERT_EQ((*pixels)[static_cast<size_t>(r * tile.cols + c)] != 0,
                    SequentialMask::IsSet(row + r, col + c));
      }
    }
  }
  EXPECT_EQ(mask->times_from_top, 0);
}

TEST(ImageContent, FollowsTheCoordinatesOfTheResult) {
  const auto mask = std::make_shared<SequentialMask>(100, 100);
  ImageContent content(mask, nullptr, {0});
  // A valid convolution of 3 x 3 with stride 2.
  content.SetResults({{49, 49, {{2, 1}, {2, 1}}}}, 100, 100, 64);
  const auto pixels = content.Read(0, {0, 0, 49, 49});
  ASSERT_TRUE(pixels.ok());
  for (int64_t r = 0; r < 49; ++r) {
    for (int64_t c = 0; c < 49; ++c)
      EXPECT_EQ((*pixels)[static_cast<size_t>(r * 49 + c)] != 0,
                SequentialMask::IsSet(2 * r + 1, 2 * c + 1));
  }
}

// The mask has half the resolution of the image.
TEST(ImageContent, MaskMayHaveAnotherResolution) {
  const auto mask = std::make_shared<SequentialMask>(50, 25);
  ImageContent content(mask, nullptr, {0});
  content.SetResults({{100, 100, {}}}, 100, 100, 64);
  const auto pixels = content.Read(0, {0, 0, 100, 100});
  ASSERT_TRUE(pixels.ok());
  for (int64_t r = 0; r < 100; ++r) {
    for (int64_t c = 0; c < 100; ++c)
      EXPECT_EQ((*pixels)[static_cast<size_t>(r * 100 + c)] != 0,
                SequentialMask::IsSet(r / 2, c / 4));
  }
}

}  // namespace
}  // namespace msrt::testing
