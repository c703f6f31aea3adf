#include "core/region/pad.h"

#include <gtest/gtest.h>

namespace msrt {
namespace {

constexpr PadMode kModes[] = {PadMode::kConstant, PadMode::kReflect, PadMode::kEdge,
                              PadMode::kWrap};

std::vector<int64_t> Sources(PadMode mode, int64_t extent, int64_t before, int64_t after) {
  const PadAxis axis(mode, extent, before, after);
  std::vector<int64_t> sources;
  for (int64_t i = 0; i < extent + before + after; ++i) sources.push_back(axis.Source(i));
  return sources;
}

using Ints = std::vector<int64_t>;

TEST(Pad, ModesSelectTheirSources) {
  EXPECT_EQ(Sources(PadMode::kConstant, 3, 2, 1), (Ints{-1, -1, 0, 1, 2, -1}));
  EXPECT_EQ(Sources(PadMode::kEdge, 3, 2, 1), (Ints{0, 0, 0, 1, 2, 2}));
  EXPECT_EQ(Sources(PadMode::kWrap, 3, 4, 1), (Ints{2, 0, 1, 2, 0, 1, 2, 0}));
  EXPECT_EQ(Sources(PadMode::kReflect, 3, 5, 3), (Ints{1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1}));
  EXPECT_EQ(Sources(PadMode::kReflect, 1, 2, 1), (Ints{0, 0, 0, 0}));
}

TEST(Pad, CropsBeforeItRepeats) {
  EXPECT_EQ(Sources(PadMode::kReflect, 4, -1, 3), (Ints{1, 2, 3, 2, 1, 2}));
  EXPECT_EQ(Sources(PadMode::kWrap, 4, 2, -1), (Ints{1, 2, 0, 1, 2}));
  EXPECT_EQ(Sources(PadMode::kConstant, 3, -5, 5), (Ints{-1, -1, -1}));
}

// Needs() is exactly the hull of all sources, for every interval of every small axis.
TEST(Pad, NeedsAreTheHullOfTheSources) {
  for (PadMode mode : kModes) {
    for (int64_t extent = 1; extent <= 5; ++extent) {
      for (int64_t before = -1; before <= 11; ++before) {
        for (int64_t after = -1; after <= 11; ++after) {
          const PadAxis axis(mode, extent, before, after);
          if (axis.kept == 0) continue;
          const int64_t count = extent + before + after;
          for (int64_t begin = 0; begin < count; ++begin) {
            Interval hull;
            for (int64_t end = begin + 1; end <= count; ++end) {
              const int64_t source = axis.Source(end - 1);
              if (source >= 0) hull = Hull(hull, {source, source + 1});
              ASSERT_EQ(axis.Needs({begin, end}), hull)
                  << "mode " << static_cast<int>(mode) << ", " << extent << " with " << before
                  << " and " << after << " at " << begin;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace msrt
