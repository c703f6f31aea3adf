#include "tests/cuda/block.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "core/base/half.h"
#include "tests/cuda/kernels.h"

namespace msrt::cuda {
namespace {

// Independent of the kernel's way: the nearer of the two neighbours, ties to even.
uint16_t NearestBFloat16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  const uint32_t rest = bits & 0xffff, low = bits >> 16;
  if (rest > 0x8000 || (rest == 0x8000 && low % 2 == 1)) return static_cast<uint16_t>(low + 1);
  return static_cast<uint16_t>(low);
}

struct Order {
  unsigned seed;
  bool shuffle, races;
};
class BlockTest : public testing::TestWithParam<Order> {
 protected:
  template <typename... Args>
  std::string Run(const char* name, unsigned blocks, unsigned threads, size_t shared,
                  Args... args) {
    const host::Kernel* kernel = FindKernel(name);
    if (kernel == nullptr) return "no kernel";
    void* pointers[] = {&args...};
    const LaunchOptions options{GetParam().seed, GetParam().shuffle, GetParam().races, nullptr};
    return RunKernel(*kernel, pointers, {{blocks, 1, 1}, {threads, 1, 1}, shared}, options);
  }
};
INSTANTIATE_TEST_SUITE_P(Orders, BlockTest,
                         testing::Values(Order{0, false, false}, Order{1, true, false},
                                         Order{2, true, true}, Order{3, true, true}));

TEST_P(BlockTest, KernelWithoutBarriers) {
  std::vector<float> x(1000), y(1000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  ASSERT_EQ(Run("test_scale", 4, 256, 0, x.data(), y.data(), 1000, 3.0f), "");
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], 3.0f * static_cast<float>(i));
}

TEST_P(BlockTest, ShufflesAndBarriers) {
  const int rows = 3, n = 300;
  std::vector<float> x(rows * n), y(rows * n);
  std::mt19937 random(1);
  for (float& value : x) value = static_cast<float>(random() % 1000) / 100;
  ASSERT_EQ(Run("test_softmax", rows, 128, 0, x.data(), y.data(), n), "");
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += std::exp(static_cast<double>(x[r * n + i]));
    for (int i = 0; i < n; ++i) ASSERT_NEAR(y[r * n + i], std::exp(x[r * n + i]) / sum, 1e-6);
  }
}

TEST_P(BlockTest, DynamicSharedMemory) {
  std::vector<int> x(256), y(256);
  for (int i = 0; i < 256; ++i) x[i] = i;
  ASSERT_EQ(Run("test_reverse", 4, 64, 256, x.data(), y.data(), 1), "");
  for (int i = 0; i < 256; ++i) ASSERT_EQ(y[i], i / 64 * 64 + 63 - i % 64);
}

TEST_P(BlockTest, SharedAtomics) {
  std::vector<unsigned> x(5000), counts(16);
  for (unsigned i = 0; i < x.size(); ++i) x[i] = i * i;
  ASSERT_EQ(Run("test_histogram", 3, 96, 0, x.data(), 5000, counts.data()), "");
  std::vector<unsigned> expected(16);
  for (unsigned value : x) ++expected[value % 16];
  EXPECT_EQ(counts, expected);
}

TEST_P(BlockTest, DivergentBarriersNameBothLines) {
  std::vector<int> y(64);
  const std::string two = Run("test_divergent", 2, 64, 0, y.data(), 0);
  EXPECT_NE(two.find("divergent barrier"), std::string::npos) << two;
  const size_t first = two.find("test_kernels.cu:"), second = two.rfind("test_kernels.cu:");
  ASSERT_NE(first, std::string::npos) << two;
  EXPECT_NE(first, second) << two;
  EXPECT_NE(two.substr(first, 20), two.substr(second, 20));
  const std::string returned = Run("test_divergent", 2, 64, 0, y.data(), 1);
  EXPECT_NE(returned.find("has returned"), std::string::npos) << returned;
  const std::string mixed = Run("test_divergent", 2, 64, 0, y.data(), 2);
  EXPECT_NE(mixed.find("divergent barrier"), std::string::npos) << mixed;
  const std::string partial = Run("test_divergent", 2, 64, 0, y.data(), 3);
  EXPECT_NE(partial.find("full masks"), std::string::npos) << partial;
  // The next launch finds everything in order.
  std::vector<int> x(64), z(64);
  EXPECT_EQ(Run("test_reverse", 1, 64, 256, x.data(), z.data(), 1), "");
}

TEST_P(BlockTest, WarpFunctions) {
  const int threads = 70;  // the last warp has 6 lanes
  std::vector<int> y(threads * 8);
  ASSERT_EQ(Run("test_warp", 1, threads, 0, y.data()), "");
  for (int t = 0; t < threads; ++t) {
    const int* out = &y[t * 8];
    const int lane = t % 32, lanes = t < 64 ? 32 : 6;
    unsigned thirds = 0;
    for (int l = 0; l < lanes; l += 3) thirds |= 1u << l;
    EXPECT_EQ(static_cast<unsigned>(out[0]), thirds);
    EXPECT_EQ(out[1], lanes == 32);
    EXPECT_EQ(out[2], lanes == 6);
    EXPECT_EQ(out[3], lane == 0 ? 0 : lane - 1);
    const int down = lane % 8 + 3 >= 8 ? lane : lane + 3;
    EXPECT_EQ(out[4], down < lanes ? down : -1);
    EXPECT_EQ(out[5], (lane ^ 5) < lanes ? lane ^ 5 : -1);
    EXPECT_EQ(out[6], lane / 4 * 4 + 2 < lanes ? lane / 4 * 4 + 2 : -1);
    EXPECT_EQ(out[7], 35);
  }
}

TEST_P(BlockTest, ThreadsThatReturnedTakeNoPartInShuffles) {
  std::vector<int> y(64, 0);
  ASSERT_EQ(Run("test_early_return", 1, 64, 0, y.data()), "");
  for (int t = 0; t < 64; ++t) EXPECT_EQ(y[t], t % 32 < 20 ? 20 : 0);
}

TEST(KernelTest, ConversionsAreExact) {
  std::vector<float> x;
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    const uint32_t bits = random();
    float value;
    std::memcpy(&value, &bits, 4);
    x.push_back(value);
    x.push_back(
        std::ldexp(static_cast<float>(bits % 100000) - 50000, static_cast<int>(bits % 40) - 32));
  }
  for (float value : {0.0f, -0.0f, 65504.0f, 65519.99f, 65520.0f, 6.0e-8f, 2.98e-8f, 2.9802322e-8f,
                      INFINITY, -INFINITY, NAN}) {
    x.push_back(value);
  }
  const int n = static_cast<int>(x.size());
  std::vector<uint16_t> half(x.size()), bfloat(x.size());
  std::vector<float> back(x.size());
  const float* in = x.data();
  uint16_t *h = half.data(), *b = bfloat.data();
  float* f = back.data();
  int count = n;
  void* arguments[] = {&in, &h, &b, &f, &count};
  ASSERT_EQ(RunKernel(*FindKernel("test_convert"), arguments,
                      {{static_cast<unsigned>(n + 255) / 256, 1, 1}, {256, 1, 1}, 0}, {}),
            "");
  for (int i = 0; i < n; ++i) {
    if (std::isnan(x[i])) {
      EXPECT_EQ(half[i], 0x7fff);
      EXPECT_EQ(bfloat[i], 0x7fff);
      continue;
    }
    ASSERT_EQ(half[i], FloatToHalf(x[i])) << x[i];
    ASSERT_EQ(bfloat[i], NearestBFloat16(x[i])) << x[i];
    ASSERT_EQ(back[i], HalfToFloat(half[i])) << x[i];
  }
}

}  // namespace
}  // namespace msrt::cuda
