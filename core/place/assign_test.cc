#include "core/place/assign.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace msrt {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

// Two nodes, the second reads what the first makes; each on the host or, with 100 bytes of its
// memory, on a device.
AssignProblem TwoNodes() {
  AssignProblem problem;
  problem.node_count = 2;
  problem.values = {
      {{8, 8, 8}, -1, {0}, false}, {{8, 8, 8}, 0, {1}, false}, {{8, 8, 8}, 1, {}, true}};
  problem.launch_seconds = {0, 0};
  problem.device_caps = {kNone, kNone};
  problem.transfers = {1, 8, {{1, 8, 1, 8}, {1, 8, 1, 8}}};
  for (uint32_t n = 0; n < 2; ++n) {
    for (uint16_t d = 0; d < 2; ++d) {
      const TensorState state = {d, Layout::kPlain};
      problem.options.push_back(
          {{n}, d, {{n, state}}, {{n + 1, state}}, d == 0 ? 10.0 : 1.0, 100, d});
    }
  }
  return problem;
}

TEST(Assign, KeepsCapsOrNamesDevice) {
  AssignProblem problem = TwoNodes();
  EXPECT_EQ(Assign(problem)->seconds, 2 + 2 + 2);  // copy there, two fast nodes, copy back
  EXPECT_EQ(Assign(problem)->option_of_node, (std::vector<uint32_t>{1, 3}));
  problem.device_caps[1] = 150;
  EXPECT_EQ(Assign(problem)->seconds, 10 + 1 + 2 + 2);
  problem.device_caps[1] = 50;
  EXPECT_EQ(Assign(problem)->seconds, 20);
  problem.device_caps[0] = 150;
  Result<Assignment> assignment = Assign(problem);
  EXPECT_EQ(assignment.status().code(), Code::kLimitExceeded);
  EXPECT_NE(assignment.status().message().find("not for all together"), std::string::npos)
      << assignment.status().message();
  std::erase_if(problem.options, [](const AssignOption& o) { return o.device == 1; });
  assignment = Assign(problem);
  EXPECT_EQ(assignment.status().code(), Code::kLimitExceeded);
  EXPECT_NE(
      assignment.status().message().find("device 0 needs at least 200 bytes and its cap is 150"),
      std::string::npos)
      << assignment.status().message();
}

// A small device has room for some of the nodes. One absurd estimate elsewhere in the graph must
// not end the search early.
TEST(Assign, AbsurdEstimateChangesNothing) {
  AssignProblem problem;
  problem.launch_seconds = {0, 0};
  problem.device_caps = {kNone, 50};
  problem.transfers.links = {{}, {0, 1e12, 0, 1e12}};
  const auto add = [&](double host_seconds, double device_seconds, double device_bytes) {
    const uint32_t n = problem.node_count++;
    problem.options.push_back({{n}, 0, {}, {}, host_seconds, 0, 0});
    problem.options.push_back({{n}, 1, {}, {}, device_seconds, device_bytes, 1});
  };
  for (uint32_t n = 0; n < 14; ++n)
    add(1e-6 * (3 + n * 7 % 17), 1e-7 * (1 + n * 5 % 19), 10 + n * 11 % 13);
  const Result<Assignment> without = Assign(problem);
  ASSERT_TRUE(without.ok() && without->optimal);
  for (const double absurd : {1e3, 1e6, 9e8}) {
    add(0, absurd, 0);
    const Result<Assignment> assignment = Assign(problem);
    ASSERT_TRUE(assignment.ok()) << assignment.status().message();
    EXPECT_TRUE(assignment->optimal);
    EXPECT_NEAR(assignment->seconds, without->seconds, 1e-12) << absurd;
    problem.options.resize(problem.options.size() - 2);
    --problem.node_count;
  }
}

TEST(Assign, NamesNodeWithoutOption) {
  AssignProblem problem = TwoNodes();
  std::erase_if(problem.options, [](const AssignOption& o) { return o.nodes[0] == 1; });
  EXPECT_EQ(Assign(problem).status().code(), Code::kUnsupported);
  EXPECT_NE(Assign(problem).status().message().find("node 1 "), std::string::npos);
  AssignProblem nothing_to_run;
  nothing_to_run.device_caps = {kNone};
  nothing_to_run.transfers.links.resize(1);
  EXPECT_TRUE(Assign(nothing_to_run).ok());
}

// 300 nodes in groups of three, in nine different partitions, and no node alone. An assignment
// exists, but mixing the partitions is a hard puzzle.
TEST(Assign, UnfinishedSearchDoesNotClaimInfeasible) {
  AssignProblem problem;
  problem.node_count = 300;
  problem.launch_seconds = {0};
  problem.device_caps = {kNone};
  problem.transfers.links.resize(1);
  std::mt19937 random(0);
  std::vector<uint32_t> order(problem.node_count);
  std::iota(order.begin(), order.end(), 0);
  for (int way = 0; way < 9; ++way) {
    std::shuffle(order.begin(), order.end(), random);
    for (auto at = order.begin(); at != order.end(); at += 3) {
      if (way > 0 && random() % 8 == 0) continue;  // only the first partition is complete
      std::vector<uint32_t> nodes(at, at + 3);
      std::sort(nodes.begin(), nodes.end());
      problem.options.push_back(
          {std::move(nodes), 0, {}, {}, 1, 1.0 + static_cast<double>(random() % 100), 0});
    }
  }
  const Status status = Assign(problem).status();
  EXPECT_EQ(status.code(), Code::kLimitExceeded);
  EXPECT_NE(status.message().find("no placement was found in time, and none was ruled out"),
            std::string::npos)
      << status.message();
  EXPECT_EQ(status.message().find("cap"), std::string::npos) << status.message();
}

TEST(Assign, RejectsMalformedProblems) {
  const auto refused = [](auto&& spoil) {
    AssignProblem problem = TwoNodes();
    spoil(problem);
    return Assign(problem).status().code() == Code::kInvalidArgument;
  };
  EXPECT_FALSE(refused([](AssignProblem&) {}));
  EXPECT_TRUE(refused([](AssignProblem& p) { p.options[1].seconds = std::nan(""); }));
  EXPECT_TRUE(refused([](AssignProblem& p) { p.options[1].seconds = -1; }));
  EXPECT_TRUE(refused([](AssignProblem& p) { p.options[1].memory_bytes = kNone; }));
  EXPECT_TRUE(refused([](AssignProblem& p) { p.options[1].device = 2; }));
  EXPECT_TRUE(refused([](AssignProblem& p) { p.options[1].delegate = 2; }));
  EXPECT_TRUE(refused([](AssignProblem& p) { p.options[1].nodes = {2}; }));
  EXPECT_TRUE(refused([](AssignProblem& p) { p.options[1].nodes = {}; }));
  EXPECT_TRUE(refused([](AssignProblem& p) { p.options[1].inputs[0].first = 3; }));
  EXPECT_TRUE(refused([](AssignProblem& p) { p.options[1].outputs[0].second.device = 2; }));
  EXPECT_TRUE(refused([](AssignProblem& p) { p.values[1].readers = {0}; }));
  EXPECT_TRUE(refused([](AssignProblem& p) { p.values[1].readers = {1, 1}; }));
  EXPECT_TRUE(refused([](AssignProblem& p) { p.values[1].producer = 2; }));
  EXPECT_TRUE(refused([](AssignProblem& p) { p.values[1].bytes[0] = -8; }));
  EXPECT_TRUE(refused([](AssignProblem& p) { p.launch_seconds[1] = kNone; }));
  EXPECT_TRUE(refused([](AssignProblem& p) { p.device_caps.resize(kMaxDevices + 1); }));
  EXPECT_TRUE(refused([](AssignProblem& p) { p.transfers.links.pop_back(); }));
  EXPECT_TRUE(refused([](AssignProblem& p) { p.transfers.links[1].to_bytes_per_second = 0; }));
  EXPECT_TRUE(
      refused([](AssignProblem& p) { p.transfers.convert_bytes_per_second = std::nan(""); }));
}

TEST(Assign, AdmissibleReturnsReason) {
  AssignProblem problem = TwoNodes();
  AssignOption both = problem.options[3];
  both.nodes = {0, 1};
  both.inputs = {{0, kHostPlain}};
  EXPECT_TRUE(Admissible(problem, both).ok());
  const auto why = [&](const AssignOption& option) {
    return Admissible(problem, option).message();
  };
  AssignOption wrong = both;
  wrong.outputs.clear();
  EXPECT_NE(why(wrong).find("value 2 is read outside"), std::string::npos) << why(wrong);
  wrong.outputs = {{2, kHostPlain}, {2, kHostPlain}};
  EXPECT_NE(why(wrong).find("listed as an output 2 times"), std::string::npos) << why(wrong);
  wrong.outputs = {{2, kHostPlain}, {0, kHostPlain}};
  EXPECT_NE(why(wrong).find("output 0 is not made"), std::string::npos) << why(wrong);
  wrong = both;
  wrong.inputs.emplace_back(1, kHostPlain);
  EXPECT_NE(why(wrong).find("input 1 is made inside"), std::string::npos) << why(wrong);
  wrong = problem.options[2];
  wrong.inputs[0].first = 0;
  EXPECT_NE(why(wrong).find("input 0 is not read by"), std::string::npos) << why(wrong);

  problem.node_count = 3;  // the last node joins the group, but the middle one waits for the first
  problem.values[0].readers = {0, 2};
  both.nodes = {0, 2};
  both.outputs = {{1, kHostPlain}};
  EXPECT_NE(why(both).find("node 1 reads value 1, which would be made only with node 2"),
            std::string::npos)
      << why(both);
}

}  // namespace
}  // namespace msrt
