#include "core/parallel/redistribute.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "core/parallel/layout.h"

namespace msrt {
namespace {

using Cells = std::map<std::vector<int64_t>, int64_t>;  // global index to content

// Calls visit with each index of the box.
template <typename Visit>
void ForEach(const Box& box, const Visit& visit) {
  if (box.empty()) return;
  std::vector<int64_t> at;
  for (int d = 0; d < box.rank(); ++d) at.push_back(box[d].begin);
  for (;;) {
    visit(at);
    int d = box.rank() - 1;
    while (d >= 0 && ++at[static_cast<size_t>(d)] == box[d].end) {
      at[static_cast<size_t>(d)] = box[d].begin;
      --d;
    }
    if (d < 0) return;
  }
}

int64_t Content(const std::vector<int64_t>& at) {
  int64_t content = 7;
  for (int64_t i : at) content = content * 1000 + i;
  return content;
}

// Executes the plan on index tensors: each rank knows its own cells and what it is sent.
void CheckPlan(const std::vector<Box>& owned, const std::vector<std::vector<Box>>& required) {
  const auto plan = PlanRedistribution(owned, required);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  for (size_t r = 0; r < owned.size(); ++r) {
    Cells cells;
    ForEach(owned[r], [&](const auto& at) { cells[at] = Content(at); });
    for (size_t q = 0; q < owned.size(); ++q) {
      std::vector<Box> sent, received;
      for (const PeerBox& s : (*plan)[q].sends) {
        if (s.rank == static_cast<int>(r)) sent.push_back(s.box);
      }
      for (const PeerBox& p : (*plan)[r].receives) {
        if (p.rank == static_cast<int>(q)) received.push_back(p.box);
      }
      ASSERT_EQ(sent, received) << "rank " << q << " to " << r;
      for (const Box& box : sent) {
        ASSERT_TRUE(Contains(owned[q], box));
        ForEach(box, [&](const auto& at) {
          ASSERT_TRUE(cells.emplace(at, Content(at)).second) << "an element came twice";
        });
      }
    }
    for (const Box& box : required[r]) {
      ForEach(box, [&](const auto& at) { ASSERT_EQ(cells.count(at), 1u); });
    }
  }
}

TEST(Redistribute, RandomLayoutsDeliverEveryElementOnce) {
  std::mt19937 random(11);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  for (int round = 0; round < 300; ++round) {
    const Dims dims{1 + below(3), 1 + below(9), 1 + below(9)};
    std::vector<DimCuts> cuts;
    for (int axis = 0; axis < 2; ++axis) {
      const int64_t parts = 1 + below(4), extent = dims[axis + 1];
      std::vector<int64_t> at{0, extent};
      while (static_cast<int64_t>(at.size()) <= parts) at.push_back(below(extent + 1));
      std::sort(at.begin(), at.end());
      // Every fourth axis does not cut the tensor: ranks along it own the same.
      cuts.push_back({below(4) == 0 ? -1 : axis + 1, at});
    }
    const auto layout = RankLayout::Grid(dims, cuts);
    ASSERT_TRUE(layout.ok()) << layout.status().message();
    std::vector<std::vector<Box>> required(layout->boxes().size());
    for (auto& list : required) {
      for (int64_t k = below(3); k > 0; --k) {
        Box box;
        for (int64_t d : dims) {
          const int64_t a = below(d + 1), b = below(d + 1);
          box.push_back({std::min(a, b), std::max(a, b)});
        }
        list.push_back(box);
      }
    }
    CheckPlan(layout->boxes(), required);
    if (HasFatalFailure()) return;
  }
}

TEST(Redistribute, AHaloWiderThanANeighbourComesFromSeveralRanks) {
  std::vector<Box> owned;
  for (int64_t r = 0; r < 4; ++r)
    owned.push_back(Box::Whole(Dims{1})), owned.back()[0] = {r, r + 1};
  std::vector<std::vector<Box>> required(4);
  required[0] = {Box::Whole(Dims{4})};
  const auto plan = PlanRedistribution(owned, required);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ((*plan)[0].receives.size(), 3u);
  EXPECT_EQ((*plan)[3].elements_sent(), 1);
  EXPECT_EQ((*plan)[3].messages_sent(), 1);
}

TEST(Redistribute, WhatNoRankOwnsIsRefused) {
  Box first = Box::Whole(Dims{5}), all = first;
  first[0] = {0, 4};
  const std::vector<Box> owned{first};
  const std::vector<std::vector<Box>> required{{all}};
  const auto plan = PlanRedistribution(owned, required);
  EXPECT_EQ(plan.status().code(), Code::kInvalidArgument);
  EXPECT_NE(plan.status().message().find("[4, 5)"), std::string::npos);
}

TEST(RankLayout, CutsFollowSharesAndGranules) {
  const std::vector<double> equal{1, 1, 1}, uneven{3, 0, 1};
  EXPECT_EQ(CutsByShares(10, equal), (std::vector<int64_t>{0, 3, 7, 10}));
  EXPECT_EQ(CutsByShares(10, equal, 4), (std::vector<int64_t>{0, 4, 8, 10}));
  EXPECT_EQ(CutsByShares(8, uneven), (std::vector<int64_t>{0, 6, 6, 8}));
  EXPECT_EQ(CutsByShares(1, equal), (std::vector<int64_t>{0, 0, 1, 1}));
  EXPECT_EQ(CutsByShares(0, equal), (std::vector<int64_t>{0, 0, 0, 0}));
}

TEST(RankLayout, BadGridsAreRefused) {
  const Dims dims{4, 6};
  const auto code = [&](std::vector<DimCuts> cuts) {
    return RankLayout::Grid(dims, cuts).status().code();
  };
  EXPECT_EQ(code({{2, {0, 4}}}), Code::kInvalidArgument);
  EXPECT_EQ(code({{0, {0, 5}}}), Code::kInvalidArgument);
  EXPECT_EQ(code({{0, {0, 3, 2, 4}}}), Code::kInvalidArgument);
  EXPECT_EQ(code({{0, {0, 4}}, {0, {0, 4}}}), Code::kInvalidArgument);
  EXPECT_EQ(code({{0, {0}}}), Code::kInvalidArgument);
}

}  // namespace
}  // namespace msrt
