#include "core/run/convert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace msrt {
namespace {

// Every element survives the conversion to any layout and back, and is at the offset that the
// layout defines.
TEST(ConvertLayout, RoundTripsAndFollowsTheLayout) {
  auto parallel = MakeThreadPool(2);
  for (const Dims& dims : {Dims{2, 3, 5, 7}, Dims{1, 16, 4, 4}, Dims{1, 9, 130},
                           Dims{2, 8, 2, 3, 5}, Dims{0, 3, 4, 4}, Dims{1, 1, 1, 1}}) {
    std::vector<float> source(static_cast<size_t>(dims.elements())), back(source.size());
    for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i + 1);
    for (Layout layout : {Layout::kPlain, Layout::kChannelsLast, Layout::kBlocked8}) {
      std::vector<float> other(BytesIn(layout, DType::kF32, dims) / 4, -1);
      ASSERT_TRUE(ConvertLayout({DType::kF32, dims, Layout::kPlain, source.data()},
                                {DType::kF32, dims, layout, other.data()}, *parallel)
                      .ok());
      ASSERT_TRUE(ConvertLayout({DType::kF32, dims, layout, other.data()},
                                {DType::kF32, dims, Layout::kPlain, back.data()}, *parallel)
                      .ok());
      EXPECT_EQ(source, back) << LayoutName(layout);
      const int64_t channels = dims[1], space = dims.product(2, dims.rank());
      for (int64_t n = 0; n < dims[0]; ++n) {
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t p = 0; p < space; ++p) {
            const float expected = source[static_cast<size_t>((n * channels + c) * space + p)];
            if (layout == Layout::kChannelsLast) {
              ASSERT_EQ(other[static_cast<size_t>((n * space + p) * channels + c)], expected);
            }
            if (layout == Layout::kBlocked8) {
              ASSERT_EQ(other[static_cast<size_t>(
                            ((n * ((channels + 7) / 8) + c / 8) * space + p) * 8 + c % 8)],
                        expected);
            }
          }
        }
      }
      if (layout == Layout::kBlocked8) {
        EXPECT_EQ(std::count(other.begin(), other.end(), -1), 0) << "padding is zero";
      }
    }
  }
}

}  // namespace
}  // namespace msrt
