#include "core/base/half_array.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace msrt {
namespace {

template <typename Small>
std::vector<Small> EveryNumber() {
  std::vector<Small> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<uint16_t>(i);
  return all;
}

template <typename Small>
void ExpectEveryNumberWidens() {
  const std::vector<Small> from = EveryNumber<Small>();
  std::vector<float> to(from.size());
  ConvertArray(from.data(), to.data(), from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    const auto expected = static_cast<float>(from[i]);
    if (std::isnan(expected)) ASSERT_TRUE(std::isnan(to[i])) << i;
    else ASSERT_EQ(std::bit_cast<uint32_t>(to[i]), std::bit_cast<uint32_t>(expected)) << i;
  }
}

// Every number of the small type, the points halfway between them, their neighbours, and random
// bits.
template <typename Small>
std::vector<float> NumbersToRound() {
  std::vector<float> numbers;
  for (const Small small : EveryNumber<Small>()) {
    const auto value = static_cast<float>(small);
    Small next;
    next.bits = static_cast<uint16_t>(small.bits + 1);
    const float middle = value / 2 + static_cast<float>(next) / 2;
    numbers.insert(numbers.end(),
                   {value, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e38f)});
  }
  std::mt19937 random(7);
  for (int i = 0; i < 100003; ++i)
    numbers.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  return numbers;
}

template <typename Small>
void ExpectNumbersRound() {
  const std::vector<float> from = NumbersToRound<Small>();
  std::vector<Small> to(from.size());
  ConvertArray(from.data(), to.data(), from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    if (std::isnan(from[i])) ASSERT_TRUE(std::isnan(static_cast<float>(to[i]))) << i;
    else ASSERT_EQ(to[i].bits, Small(from[i]).bits) << i << ": " << from[i];
  }
}

TEST(HalfArray, EveryHalfWidens) { ExpectEveryNumberWidens<Half>(); }
TEST(HalfArray, EveryBFloat16Widens) { ExpectEveryNumberWidens<BFloat16>(); }
TEST(HalfArray, FloatsRoundToHalf) { ExpectNumbersRound<Half>(); }
TEST(HalfArray, FloatsRoundToBFloat16) { ExpectNumbersRound<BFloat16>(); }

TEST(HalfArray, NothingIsWrittenBeyondTheEnd) {
  for (size_t count = 0; count < 40; ++count) {
    const std::vector<float> from(count, 1.5f);
    std::vector<BFloat16> to(count + 1, BFloat16(-7.0f));
    ConvertArray(from.data(), to.data(), count);
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(static_cast<float>(to[i]), 1.5f);
    ASSERT_EQ(static_cast<float>(to[count]), -7.0f);
  }
}

}  // namespace
}  // namespace msrt
