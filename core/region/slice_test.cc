#include "core/region/slice.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace msrt {
namespace {

// The definition in the ONNX specification, element by element.
std::vector<int64_t> ReferenceSlice(int64_t start, int64_t end, int64_t step, int64_t extent) {
  if (start < 0) start += extent;
  if (end < 0) end += extent;
  std::vector<int64_t> elements;
  if (extent == 0) return elements;
  if (step > 0) {
    for (int64_t i = std::clamp<int64_t>(start, 0, extent); i < std::clamp<int64_t>(end, 0, extent);
         i += step)
      elements.push_back(i);
  } else {
    for (int64_t i = std::clamp<int64_t>(start, 0, extent - 1);
         i > std::clamp<int64_t>(end, -1, extent - 1); i += step)
      elements.push_back(i);
  }
  return elements;
}

TEST(Slice, MatchesSpecificationForSmallExtents) {
  for (int64_t extent = 0; extent <= 5; ++extent) {
    for (int64_t start = -8; start <= 8; ++start) {
      for (int64_t end = -8; end <= 8; ++end) {
        for (int64_t step : {-9, -3, -2, -1, 1, 2, 3, 9}) {
          const SliceAxis s = NormalizeSlice(start, end, step, extent);
          std::vector<int64_t> got;
          for (int64_t i = 0; i < s.count; ++i) got.push_back(s.start + s.step * i);
          ASSERT_EQ(got, ReferenceSlice(start, end, step, extent))
              << start << ":" << end << ":" << step << " of " << extent;
        }
      }
    }
  }
}

TEST(Slice, ExtremesDoNotOverflow) {
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min(),
                    kHigh = std::numeric_limits<int64_t>::max();
  constexpr int64_t kExtent = int64_t{1} << 56;
  for (int64_t extent : {int64_t{0}, int64_t{1}, int64_t{7}, kExtent}) {
    for (int64_t start : {kLow, int64_t{0}, kHigh}) {
      for (int64_t end : {kLow, int64_t{0}, kHigh}) {
        for (int64_t step : {kLow, int64_t{-1}, int64_t{1}, kHigh}) {
          const SliceAxis s = NormalizeSlice(start, end, step, extent);
          ASSERT_LE(s.count, extent);
          if (s.count == 0) continue;
          ASSERT_GE(std::min(s.start, s.start + s.step * (s.count - 1)), 0);
          ASSERT_LT(std::max(s.start, s.start + s.step * (s.count - 1)), extent);
        }
      }
    }
  }
}

}  // namespace
}  // namespace msrt
