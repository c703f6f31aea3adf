// Whole networks on several ranks, with the shipped kernels in exact mode: the bits of one rank.
#include <gtest/gtest.h>

#include <random>

#include "tests/ranks/rank_runs.h"
#include "tools/msconvert/zoo.h"

namespace msrt::testing {
namespace {

void CheckNetwork(const char* name, const zoo::Options& options, const Dims& image) {
  const auto module = zoo::Build(name, options);
  ASSERT_TRUE(module.ok()) << module.status().message();
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(image.elements()));
  for (float& v : values) v = normal(random);
  const std::vector<ConstTensor> inputs{ConstTensor::Floats(image, values)};
  CompileOptions exact;
  exact.place.exact = true;
  for (const std::vector<int>& parts : std::vector<std::vector<int>>{{2}, {3}, {2, 2}}) {
    SplitOptions split{.parts = parts};
    EXPECT_EQ(CompareWithWhole(*module, inputs, exact, split), "") << name;
    split.halos = HaloRule::kExchange;
    split.overlap = OverlapRule::kAlways;
    split.shares = {std::vector<double>(static_cast<size_t>(parts[0]), 1.0)};
    split.shares[0][0] = 2.3;
    EXPECT_EQ(CompareWithWhole(*module, inputs, exact, split), "") << name;
  }
}

TEST(ZooSplit, UNet) {
  CheckNetwork("unet", {.batch = 1, .image = 64, .width = 8}, {1, 4, 64, 64});
}
TEST(ZooSplit, DeepLab) {
  CheckNetwork("deeplab", {.batch = 1, .image = 71, .width = 8}, {1, 4, 71, 71});
}
TEST(ZooSplit, ResNet50) {
  CheckNetwork("resnet50", {.batch = 1, .image = 97, .width = 8, .classes = 10}, {1, 3, 97, 97});
}

}  // namespace
}  // namespace msrt::testing
