#include "core/run/convert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace msrt {
namespace {

// The address of an element by the definition of the layout, written down once more.
size_t OffsetIn(Layout layout, const Dims& dims, int64_t n, int64_t c, int64_t p) {
  const int64_t channels = dims[1], space = dims.product(2, dims.rank());
  const auto blocked = [&](int64_t block) {
    return ((n * ((channels + block - 1) / block) + c / block) * space + p) * block + c % block;
  };
  switch (layout) {
    case Layout::kPlain:
      return static_cast<size_t>((n * channels + c) * space + p);
    case Layout::kChannelsLast:
      return static_cast<size_t>((n * space + p) * channels + c);
    case Layout::kBlocked8:
      return static_cast<size_t>(blocked(8));
    case Layout::kBlocked16:
      return static_cast<size_t>(blocked(16));
  }
  return 0;
}

// The tensor 1, 2, 3... in a layout, by that definition; padding is zero.
template <typename T>
std::vector<T> Made(Layout layout, DType dtype, const Dims& dims) {
  std::vector<T> made(BytesIn(layout, dtype, dims) / sizeof(T));
  T next = 0;
  for (int64_t n = 0; n < dims[0]; ++n) {
    for (int64_t c = 0; c < dims[1]; ++c) {
      for (int64_t p = 0; p < dims.product(2, dims.rank()); ++p)
        made[OffsetIn(layout, dims, n, c, p)] = ++next;
    }
  }
  return made;
}

template <typename T>
void ExpectAllPairsConvert(DType dtype) {
  auto parallel = MakeThreadPool(2);
  for (const Dims& dims : {Dims{2, 3, 5, 7}, Dims{1, 16, 4, 4}, Dims{1, 9, 130},
                           Dims{2, 8, 2, 3, 5}, Dims{2, 17, 3, 70}, Dims{1, 24, 1, 65},
                           Dims{0, 3, 4, 4}, Dims{2, 0, 4, 4}, Dims{1, 1, 1, 1}}) {
    for (uint32_t from = 0; from < kLayoutCount; ++from) {
      for (uint32_t to = 0; to < kLayoutCount; ++to) {
        const auto a = static_cast<Layout>(from), b = static_cast<Layout>(to);
        std::vector<T> source = Made<T>(a, dtype, dims);
        std::vector<T> target(BytesIn(b, dtype, dims) / sizeof(T), static_cast<T>(-1));
        ASSERT_TRUE(ConvertLayout({dtype, dims, a, source.data()}, {dtype, dims, b, target.data()},
                                  *parallel)
                        .ok());
        EXPECT_EQ(target, Made<T>(b, dtype, dims))
            << LayoutName(a) << " to " << LayoutName(b) << " of " << StrCat(dims);
      }
    }
  }
}

TEST(ConvertLayout, EveryPairOfLayouts) {
  ExpectAllPairsConvert<float>(DType::kF32);
  ExpectAllPairsConvert<uint8_t>(DType::kU8);
  ExpectAllPairsConvert<uint16_t>(DType::kF16);
  ExpectAllPairsConvert<int64_t>(DType::kI64);
}

// The same inside larger tensors, whose other elements stay as they are.
TEST(ConvertLayout, CopiesPartsOfLargerTensors) {
  auto parallel = MakeThreadPool(2);
  const Dims dims{2, 9, 3, 5}, larger{3, 16, 7, 6};
  std::vector<float> source(static_cast<size_t>(dims.elements()));
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i + 1);
  const TensorView plain{DType::kF32, dims, Layout::kPlain, source.data()};
  for (uint32_t f = 0; f < kLayoutCount; ++f) {
    for (uint32_t t = 0; t < kLayoutCount; ++t) {
      const auto from = static_cast<Layout>(f), to = static_cast<Layout>(t);
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
      const int64_t written = 2 * 3 * 5 * (BlockOf(to) > 1 ? 16 : 9);
      EXPECT_EQ(std::count(b.begin(), b.end(), -1), static_cast<int64_t>(b.size()) - written);
    }
  }
}

TEST(ConvertLayout, BlocksArePadded) {
  EXPECT_EQ(BytesIn(Layout::kPlain, DType::kF32, {2, 17, 3}), 2u * 17 * 3 * 4);
  EXPECT_EQ(BytesIn(Layout::kChannelsLast, DType::kF32, {2, 17, 3}), 2u * 17 * 3 * 4);
  EXPECT_EQ(BytesIn(Layout::kBlocked8, DType::kF32, {2, 17, 3}), 2u * 24 * 3 * 4);
  EXPECT_EQ(BytesIn(Layout::kBlocked16, DType::kF32, {2, 17, 3}), 2u * 32 * 3 * 4);
}

}  // namespace
}  // namespace msrt
