#include <gtest/gtest.h>

#include "core/comm/engine.h"
#include "tests/comm/conformance.h"

namespace msrt {
namespace {

std::string RunGloo(int ranks, const RankBody& body, std::chrono::milliseconds stall_limit) {
  return RunInProcesses("gloo", ranks, body, stall_limit);
}

TEST(GlooEngineTest, Conforms) { RunConformance({"gloo", 8, RunGloo, 0.2}); }

TEST(GlooEngineTest, OthersNameStoppedRank) { EXPECT_EQ(CheckStoppedRanks("gloo", 2), ""); }

TEST(GlooEngineTest, SurvivorsNameKilledRank) { EXPECT_EQ(CheckKilledRanks("gloo", 5), ""); }

}  // namespace
}  // namespace msrt
