#include "core/bind/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

#include "core/base/allocator.h"

namespace msrt {
namespace {

void ExpectSound(std::span<const LiveBlock> blocks, const MemoryPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % kTensorAlignment, 0u);
    EXPECT_LE(plan.offsets[i] + blocks[i].bytes, plan.arena_bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool same_time = blocks[i].first <= blocks[j].last && blocks[j].first <= blocks[i].last;
      const bool same_place = plan.offsets[i] < plan.offsets[j] + blocks[j].bytes &&
                              plan.offsets[j] < plan.offsets[i] + blocks[i].bytes;
      EXPECT_FALSE(same_time && same_place) << i << " and " << j;
    }
  }
  EXPECT_GE(plan.arena_bytes, plan.lower_bound_bytes);
}

TEST(MemoryPlan, NoBlocksNeedNoArena) {
  const MemoryPlan plan = PlanMemory({});
  EXPECT_EQ(plan.arena_bytes, 0u);
  EXPECT_EQ(plan.lower_bound_bytes, 0u);
}

TEST(MemoryPlan, ChainReusesTwoBuffers) {
  std::vector<LiveBlock> chain;
  for (uint32_t i = 0; i < 20; ++i) chain.push_back({1000, i, i + 1});
  const MemoryPlan plan = PlanMemory(chain);
  ExpectSound(chain, plan);
  EXPECT_EQ(plan.arena_bytes, 2048u);
}

TEST(MemoryPlan, RandomBlocksNeverOverlapAndStayNearTheBound) {
  std::mt19937 random(3);
  double worst = 1, sum = 0;
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<LiveBlock> blocks;
    for (uint32_t i = 0; i < 60; ++i) {
      const uint32_t first = random() % 50;
      blocks.push_back({random() % 10000, first, first + static_cast<uint32_t>(random() % 6)});
    }
    const MemoryPlan plan = PlanMemory(blocks);
    ExpectSound(blocks, plan);
    const double ratio =
        static_cast<double>(plan.arena_bytes) / static_cast<double>(plan.lower_bound_bytes);
    worst = std::max(worst, ratio);
    sum += ratio;
  }
  EXPECT_LT(worst, 1.35);
  EXPECT_LT(sum / kRounds, 1.08);
}

}  // namespace
}  // namespace msrt
