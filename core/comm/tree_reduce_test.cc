#include "core/comm/tree_reduce.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace msrt {
namespace {

using Array = std::vector<float>;

// Values of very different size: any change of the order of additions changes bits.
std::vector<Array> RandomParts(size_t parts, size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> exponent(-20, 20), mantissa(-2, 2);
  std::vector<Array> all(parts, Array(count));
  for (Array& part : all)
    for (float& x : part) x = std::ldexp(mantissa(random), static_cast<int>(exponent(random)));
  return all;
}

Array Reduce(const std::vector<Array>& parts) {
  std::vector<const void*> pointers;
  for (const Array& part : parts) pointers.push_back(part.data());
  Array out(parts[0].size());
  TreeReduce(pointers, out.data(), out.size(), CommType::kF32, CommReduce::kSum);
  return out;
}

// The definition, one element at a time: neighbours at distance 1, 2, 4, ...
float ExpectedSum(const std::vector<Array>& parts, size_t element) {
  Array values;
  for (const Array& part : parts) values.push_back(part[element]);
  for (size_t stride = 1; stride < values.size(); stride *= 2)
    for (size_t i = 0; i + stride < values.size(); i += 2 * stride) values[i] += values[i + stride];
  return values[0];
}

bool SameBits(const Array& a, const Array& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(TreeReduceTest, EqualsDefinition) {
  for (size_t parts = 1; parts <= 17; ++parts) {
    const auto all = RandomParts(parts, 1301, static_cast<unsigned>(parts));
    const Array sum = Reduce(all);
    for (size_t i = 0; i < sum.size(); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(sum[i]), std::bit_cast<uint32_t>(ExpectedSum(all, i)))
          << parts << " parts, element " << i;
  }
}

TEST(TreeReduceTest, ResultMayReplaceAPart) {
  for (size_t parts : {size_t{2}, size_t{3}, size_t{8}}) {
    const auto all = RandomParts(parts, 999, 5);
    const Array expected = Reduce(all);
    for (size_t target = 0; target < parts; ++target) {
      auto copy = all;
      std::vector<const void*> pointers;
      for (const Array& part : copy) pointers.push_back(part.data());
      TreeReduce(pointers, copy[target].data(), 999, CommType::kF32, CommReduce::kSum);
      EXPECT_TRUE(SameBits(copy[target], expected)) << parts << " parts, into " << target;
    }
  }
}

TEST(TreeReduceTest, BitsDoNotDependOnNumberOfRanks) {
  const auto shards = RandomParts(kVirtualShards, 777, 11);
  const Array expected = Reduce(shards);
  for (int ranks : {1, 2, 4, 8}) {
    std::vector<Array> contributions;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto [first, last] = ShardsOfRank(rank, ranks);
      contributions.push_back(
          Reduce(std::vector<Array>(shards.begin() + first, shards.begin() + last)));
    }
    EXPECT_TRUE(SameBits(Reduce(contributions), expected)) << ranks << " ranks";
  }
  // The order matters in this data: from left to right the bits are others.
  Array sequential = shards[0];
  for (size_t s = 1; s < shards.size(); ++s)
    for (size_t i = 0; i < sequential.size(); ++i) sequential[i] += shards[s][i];
  EXPECT_FALSE(SameBits(sequential, expected));
}

TEST(TreeReduceTest, ShardsCoverAllRanks) {
  for (int ranks = 1; ranks <= 20; ++ranks) {
    int next = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto [first, last] = ShardsOfRank(rank, ranks);
      EXPECT_EQ(first, next);
      EXPECT_LE(first, last);
      next = last;
    }
    EXPECT_EQ(next, kVirtualShards);
  }
}

}  // namespace
}  // namespace msrt
