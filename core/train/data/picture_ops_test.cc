// Pictures against values of Pillow and numpy (tests/data/generate/pictures.py).
#include "core/train/data/picture_ops.h"

#include "core/image/jobs/image_normalize.h"
#include "core/train/data/data_testing.h"

namespace msrt::testing {
namespace {

Picture Expected(const std::string& name) {
  const auto source = MustOpen(std::string(MSRT_PICTURE_DATA) + "/" + name + ".npy");
  const ImageInfo& info = source->info();
  Picture picture;
  picture.Resize(info.channels, info.height, info.width);
  const Status status =
      source->Read({0, 0, info.height, info.width},
                   {picture.pixels.data(), DType::kF32, info.height * info.width, info.width});
  EXPECT_TRUE(status.ok()) << status.message();
  return picture;
}

void ExpectNear(const Picture& picture, const std::string& name, float tolerance) {
  const Picture expected = Expected(name);
  ASSERT_EQ(picture.channels, expected.channels);
  ASSERT_EQ(picture.rows, expected.rows);
  ASSERT_EQ(picture.cols, expected.cols);
  for (size_t i = 0; i < expected.pixels.size(); ++i)
    ASSERT_NEAR(picture.pixels[i], expected.pixels[i], tolerance) << name << " " << i;
}

TEST(PictureOps, ResizeIsPillows) {
  struct Case {
    const char* name;
    int64_t rows, cols;
  };
  for (const Case& c : {Case{"smaller", 9, 8}, Case{"larger", 40, 31}, Case{"wider", 5, 60}}) {
    Picture picture = Expected("picture");
    ResizePicture(c.rows, c.cols, &picture);
    ExpectNear(picture, c.name, 1e-4F);
  }
}

TEST(PictureOps, CropPadsWithZeros) {
  Picture picture = Expected("picture");
  CropPicture(-3, 6, 20, 14, &picture);
  ExpectNear(picture, "cropped", 0);
}

TEST(PictureOps, RotationAndTurnsAreCounterClockwise) {
  Picture picture = Expected("picture");
  RotatePicture(25, &picture);
  ExpectNear(picture, "rotated", 1e-3F);
  picture = Expected("picture");
  TurnPicture(1, &picture);
  ExpectNear(picture, "turned", 0);
  TurnPicture(3, &picture);
  ExpectNear(picture, "picture", 0);
}

TEST(PictureOps, ColorsChangeInOrder) {
  Picture picture = Expected("picture");
  ChangeColors({1.3, 0.7, 1.4}, &picture);
  ExpectNear(picture, "colored", 1e-3F);
}

TEST(PictureOps, NormalizationIsPerChannel) {
  Picture picture = Expected("picture");
  const auto normalization = ParseNormalization("mean=123.7,116.3,103.5 std=58.4,57.1,57.4");
  for (int64_t c = 0; c < 3; ++c)
    normalization->Apply(
        c, std::span(picture.Plane(c), static_cast<size_t>(picture.rows * picture.cols)));
  ExpectNear(picture, "normalized", 1e-6F);
}

TEST(PictureOps, FlipsReverse) {
  Picture picture = NumberedPicture(2, 3, 4);
  FlipColumns(&picture);
  EXPECT_EQ(picture.Plane(1)[0], 12 + 3);
  EXPECT_EQ(picture.label_map[0], 3);
  FlipColumns(&picture);
  FlipRows(&picture);
  EXPECT_EQ(picture.Plane(1)[0], 12 + 8);
  EXPECT_EQ(picture.label_map[0], 8);
  EXPECT_EQ(picture.label_map[11], 3);
}

// Each pixel of the numbered picture has its label, so geometry must keep them equal.
TEST(PictureOps, LabelsFollowTheirPixels) {
  const auto expect_equal = [](const Picture& picture, const char* step) {
    ASSERT_EQ(picture.label_map.size(), static_cast<size_t>(picture.rows * picture.cols)) << step;
    for (size_t i = 0; i < picture.label_map.size(); ++i) {
      if (picture.label_map[i] == kIgnoredLabel) {
        EXPECT_EQ(picture.pixels[i], 0) << step;
      } else {
        EXPECT_EQ(picture.pixels[i], static_cast<float>(picture.label_map[i])) << step << " " << i;
      }
    }
  };
  Picture picture = NumberedPicture(1, 5, 7);
  CropPicture(-2, 1, 6, 8, &picture);
  expect_equal(picture, "crop");
  EXPECT_EQ(picture.label_map[0], kIgnoredLabel);
  EXPECT_EQ(picture.label_map[2 * 8], 1);
  picture = NumberedPicture(1, 5, 7);
  TurnPicture(3, &picture);
  expect_equal(picture, "turn");
  picture = NumberedPicture(1, 5, 5);
  RotatePicture(0, &picture);
  expect_equal(picture, "rotate by nothing");
  // Nearest: the middle of 2 x 2 blocks that halve the size is the lower right pixel.
  picture = NumberedPicture(1, 4, 4);
  ResizePicture(2, 2, &picture);
  EXPECT_EQ(picture.label_map, (std::vector<int32_t>{5, 7, 13, 15}));
}

TEST(PictureOps, ChannelsAreConverted) {
  Picture grey = NumberedPicture(1, 2, 2);
  ASSERT_TRUE(ConvertChannels(3, &grey).ok());
  EXPECT_EQ(grey.pixels, (std::vector<float>{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}));
  Picture color = NumberedPicture(4, 1, 1);  // 0, 1, 2 and alpha 3
  ASSERT_TRUE(ConvertChannels(3, &color).ok());
  EXPECT_EQ(color.pixels, (std::vector<float>{0, 1, 2}));
  ASSERT_TRUE(ConvertChannels(1, &color).ok());
  EXPECT_NEAR(color.pixels[0], 0.587 + 2 * 0.114, 1e-6);
  Picture bands = NumberedPicture(5, 1, 1);
  EXPECT_FALSE(ConvertChannels(3, &bands).ok());
}

}  // namespace
}  // namespace msrt::testing
