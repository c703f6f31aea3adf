#include "core/train/data/augment.h"

#include <cmath>
#include <set>

#include "core/train/data/data_testing.h"

namespace msrt::testing {
namespace {

std::vector<AugmentStep> Steps(std::string_view text) {
  auto augmentation = ParseAugmentation(text);
  EXPECT_TRUE(augmentation.ok()) << augmentation.status().message();
  return augmentation.ok() ? augmentation->steps : std::vector<AugmentStep>{};
}

TEST(Augmentation, StepsAreParsedInOrder) {
  auto augmentation =
      ParseAugmentation("crop:32:4 hflip:0.25 resize:100x90 color:0.2,0.3,0.4 rotate:15 mixup:0.2");
  ASSERT_TRUE(augmentation.ok()) << augmentation.status().message();
  EXPECT_EQ(augmentation->mixup, 0.2);
  const std::vector<AugmentStep>& steps = augmentation->steps;
  ASSERT_EQ(steps.size(), 5u);
  EXPECT_EQ(steps[0].kind, AugmentStep::Kind::kCrop);
  EXPECT_EQ(steps[0].rows, 32);
  EXPECT_EQ(steps[0].padding, 4);
  EXPECT_EQ(steps[1].kind, AugmentStep::Kind::kFlipColumns);
  EXPECT_EQ(steps[1].amount, 0.25);
  EXPECT_EQ(steps[2].rows, 100);
  EXPECT_EQ(steps[2].cols, 90);
  EXPECT_EQ(steps[3].amount, 0.2);
  EXPECT_EQ(steps[3].contrast, 0.3);
  EXPECT_EQ(steps[3].saturation, 0.4);
  EXPECT_EQ(steps[4].kind, AugmentStep::Kind::kRotate);
  EXPECT_EQ(steps[4].amount, 15);
  EXPECT_TRUE(Steps("").empty());
}

TEST(Augmentation, WrongStepsAreRefused) {
  for (const char* text :
       {"blur", "crop", "crop:0", "crop:3x", "crop:3:-1", "hflip:2", "turn:1", "rotate:200",
        "color:1,2,3,4", "color:-1", "mixup:0", "mixup:9", "resize:99999999"}) {
    const auto parsed = ParseAugmentation(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_NE(parsed.status().message().find(text), std::string::npos);
  }
}

TEST(Augmentation, DrawsDependOnSeedEpochAndPosition) {
  const std::vector<AugmentStep> steps = Steps("crop:4:2 hflip vflip turn rotate:20 color:0.5,0.5");
  const auto made = [&](uint64_t seed, int64_t epoch, int64_t position) {
    Picture picture = NumberedPicture(3, 5, 5);
    EXPECT_TRUE(Augment(steps, SampleRandom(seed, epoch, position), &picture).ok());
    return picture.pixels;
  };
  EXPECT_EQ(made(1, 2, 3), made(1, 2, 3));
  EXPECT_NE(made(1, 2, 3), made(2, 2, 3));
  EXPECT_NE(made(1, 2, 3), made(1, 3, 3));
  EXPECT_NE(made(1, 2, 3), made(1, 2, 4));
}

TEST(Augmentation, CropsReachEveryPlace) {
  const std::vector<AugmentStep> steps = Steps("crop:3:1");
  std::set<std::vector<float>> crops;
  for (int64_t i = 0; i < 400; ++i) {
    Picture picture = NumberedPicture(1, 4, 4);
    ASSERT_TRUE(Augment(steps, SampleRandom(7, 0, i), &picture).ok());
    ASSERT_EQ(picture.rows, 3);
    crops.insert(picture.pixels);
  }
  EXPECT_EQ(crops.size(), 16u);  // (4 + 2 * 1 - 3 + 1) squared
}

TEST(Augmentation, FlipsHaveTheirProbability) {
  const std::vector<AugmentStep> steps = Steps("hflip:0.25");
  int flipped = 0;
  for (int64_t i = 0; i < 4000; ++i) {
    Picture picture = NumberedPicture(1, 1, 2);
    ASSERT_TRUE(Augment(steps, SampleRandom(3, 1, i), &picture).ok());
    flipped += picture.pixels[0] == 1;
  }
  EXPECT_NEAR(flipped, 1000, 5 * std::sqrt(4000 * 0.25 * 0.75));
}

TEST(Augmentation, ZoomStaysInsideAndHasItsSize) {
  const std::vector<AugmentStep> steps = Steps("zoom:6x5:0.3");
  for (int64_t i = 0; i < 200; ++i) {
    Picture picture = NumberedPicture(1, 9, 11);
    for (float& value : picture.pixels) value += 1;
    ASSERT_TRUE(Augment(steps, SampleRandom(3, 1, i), &picture).ok());
    ASSERT_EQ(picture.rows, 6);
    ASSERT_EQ(picture.cols, 5);
    for (const float value : picture.pixels) ASSERT_GE(value, 1);
  }
}

TEST(Augmentation, CropThatDoesNotFitIsAnError) {
  Picture picture = NumberedPicture(1, 4, 4);
  const Status status = Augment(Steps("crop:7:1"), SampleRandom(0, 0, 0), &picture);
  EXPECT_NE(status.message().find("4 x 4"), std::string::npos) << status.message();
}

TEST(Augmentation, MixRatiosFollowTheBetaDistribution) {
  for (const double alpha : {0.2, 1.0, 2.0}) {
    double sum = 0, squares = 0;
    constexpr int kDraws = 20000;
    for (int64_t i = 0; i < kDraws; ++i) {
      const double ratio = DrawMixRatio(alpha, SampleRandom(5, 0, i));
      ASSERT_GE(ratio, 0);
      ASSERT_LE(ratio, 1);
      sum += ratio;
      squares += (ratio - 0.5) * (ratio - 0.5);
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    EXPECT_NEAR(sum / kDraws, 0.5, 5 * std::sqrt(variance / kDraws));
    EXPECT_NEAR(squares / kDraws, variance, 0.03 * variance);
  }
}

}  // namespace
}  // namespace msrt::testing
