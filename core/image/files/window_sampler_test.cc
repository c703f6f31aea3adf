#include "core/image/files/window_sampler.h"

#include <algorithm>
#include <set>

#include "core/image/files/image_testing.h"

namespace msrt::testing {
namespace {

std::unique_ptr<ImageSource> PatternSource(int64_t channels, int64_t height, int64_t width) {
  ImageInfo info;
  info.dtype = DType::kF32;
  info.channels = channels;
  info.height = height;
  info.width = width;
  auto source = MakeCallbackSource(info, [](const ImageWindow& w, const PixelBuffer& out) {
    const Pixels pixels =
        Pattern(DType::kF32, w.channels, w.rows, w.cols, w.row, w.col, 0, w.channel);
    std::memcpy(out.data, pixels.bytes.data(), pixels.bytes.size());
    return OkStatus();
  });
  return *std::move(source);
}

using Grid = std::vector<std::vector<float>>;

Grid Flipped(Grid grid) {
  for (auto& row : grid) std::reverse(row.begin(), row.end());
  return grid;
}
// Counter-clockwise, as numpy.rot90: the last column becomes the first row.
Grid Turned(const Grid& grid) {
  Grid turned(grid[0].size(), std::vector<float>(grid.size()));
  for (size_t r = 0; r < grid.size(); ++r) {
    for (size_t c = 0; c < grid[0].size(); ++c) turned[grid[0].size() - 1 - c][r] = grid[r][c];
  }
  return turned;
}

TEST(WindowSampler, SamplesAreTurnedWindowsOfTheImage) {
  const auto source = PatternSource(2, 40, 50);
  auto sampler = WindowSampler::Make(source.get(), {.rows = 5,
                                                    .cols = 8,
                                                    .seed = 11,
                                                    .flips = true,
                                                    .quarter_turns = true,
                                                    .mean = {1, 2},
                                                    .deviation = {2, 4}});
  ASSERT_TRUE(sampler.ok()) << sampler.status().message();
  std::set<int> kinds;
  for (uint64_t i = 0; i < 100; ++i) {
    const SampleWindow sample = sampler->Choose(i);
    kinds.insert(sample.quarter_turns * 2 + sample.flip);
    std::vector<float> out(2 * 5 * 8);
    ASSERT_TRUE(sampler->Read(i, out).ok());
    for (size_t channel = 0; channel < 2; ++channel) {
      const auto& w = sample.window;
      Grid grid(static_cast<size_t>(w.rows), std::vector<float>(static_cast<size_t>(w.cols)));
      for (int64_t r = 0; r < w.rows; ++r) {
        for (int64_t c = 0; c < w.cols; ++c)
          grid[static_cast<size_t>(r)][static_cast<size_t>(c)] = static_cast<float>(
              PatternValue(DType::kF32, static_cast<int64_t>(channel), w.row + r, w.col + c));
      }
      if (sample.flip) grid = Flipped(grid);
      for (int turn = 0; turn < sample.quarter_turns; ++turn) grid = Turned(grid);
      ASSERT_EQ(grid.size(), 5u);
      for (size_t r = 0; r < 5; ++r) {
        for (size_t c = 0; c < 8; ++c) {
          const float expected = channel == 0 ? (grid[r][c] - 1) / 2 : (grid[r][c] - 2) / 4;
          ASSERT_EQ(out[(channel * 5 + r) * 8 + c], expected) << i;
        }
      }
    }
  }
  EXPECT_EQ(kinds.size(), 8u);
}

TEST(WindowSampler, SamplesDependOnSeedAndIndexOnly) {
  const auto source = PatternSource(1, 300, 300);
  const auto choose = [&](uint64_t seed, uint64_t index) {
    auto sampler = WindowSampler::Make(source.get(), {.rows = 4, .cols = 4, .seed = seed});
    const ImageWindow window = sampler->Choose(index).window;
    return std::pair(window.row, window.col);
  };
  EXPECT_EQ(choose(1, 5), choose(1, 5));
  EXPECT_NE(choose(1, 5), choose(2, 5));
  EXPECT_NE(choose(1, 5), choose(1, 6));
}

TEST(WindowSampler, ImpossibleSamplesAreRefused) {
  const auto source = PatternSource(2, 40, 50);
  const auto refused = [&](SamplerOptions options) {
    return !WindowSampler::Make(source.get(), std::move(options)).ok();
  };
  EXPECT_TRUE(refused({.rows = 41, .cols = 4}));
  EXPECT_TRUE(refused({.rows = 4, .cols = 45, .quarter_turns = true}));
  EXPECT_TRUE(refused({.rows = 0, .cols = 4}));
  EXPECT_TRUE(refused({.rows = 4, .cols = 4, .mean = {1}}));
  EXPECT_TRUE(refused({.rows = 4, .cols = 4, .deviation = {1, 0}}));
  EXPECT_FALSE(refused({.rows = 40, .cols = 50}));
}

}  // namespace
}  // namespace msrt::testing
