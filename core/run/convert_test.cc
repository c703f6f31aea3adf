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

// The same inside larger tensors, whose other elements stay as they are.
TEST(ConvertLayout, CopiesPartsOfLargerTensors) {
  auto parallel = MakeThreadPool(2);
  constexpr Layout kLayouts[] = {Layout::kPlain, Layout::kChannelsLast, Layout::kBlocked8};
  const Dims dims{2, 9, 3, 5}, larger{3, 16, 7, 6};
  std::vector<float> source(static_cast<size_t>(dims.elements()));
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i + 1);
  const TensorView plain{DType::kF32, dims, Layout::kPlain, source.data()};
  for (const Layout from : kLayouts) {
    for (const Layout to : kLayouts) {
      const Dims from_strides = DenseStrides(from, larger), to_strides = DenseStrides(to, larger);
      std::vector<float> a(BytesIn(from, DType::kF32, larger) / 4, -1), b(a.size(), -1),
          back(source.size());
      b.resize(BytesIn(to, DType::kF32, larger) / 4, -1);
      TensorView in{DType::kF32, dims, from, a.data() + from_strides[2] + from_strides[3]};
      TensorView out{DType::kF32, dims, to, b.data() + 2 * to_strides[2]};
      in.strides = from_strides.begin(), out.strides = to_strides.begin();
      ASSERT_TRUE(ConvertLayout(plain, in, *parallel).ok());
      ASSERT_TRUE(ConvertLayout(in, out, *parallel).ok());
      const TensorView result{DType::kF32, dims, Layout::kPlain, back.data()};
      ASSERT_TRUE(ConvertLayout(out, result, *parallel).ok());
      EXPECT_EQ(source, back) << LayoutName(from) << " to " << LayoutName(to);
      // A blocked tensor has 16 channels in memory for its 9.
      const int64_t written = 2 * 3 * 5 * (to == Layout::kBlocked8 ? 16 : 9);
      EXPECT_EQ(std::count(b.begin(), b.end(), -1), static_cast<int64_t>(b.size()) - written);
    }
  }
}

}  // namespace
}  // namespace msrt
