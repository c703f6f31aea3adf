#include "core/comm/job/monitor.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace msrt {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLimit{1000};

CommProgress InAllReduce(uint64_t sequence, uint64_t bytes = 4096) {
  return {"world", 1, CommKind::kAllReduce, sequence, bytes, true};
}

// A monitor of three ranks with a clock that the test moves.
class MonitorTest : public testing::Test {
 protected:
  MonitorTest() {
    for (uint32_t rank = 0; rank < 3; ++rank)
      EXPECT_TRUE(monitor_.Join(rank, 3, "h", 100 + rank, now_).ok());
  }
  // Moves the clock in steps in which every rank but `silent` beats.
  void Pass(milliseconds duration, int silent = -1) {
    for (const SteadyTime end = now_ + duration; now_ < end;) {
      now_ += milliseconds(50);
      for (int rank = 0; rank < 3; ++rank)
        if (rank != silent) monitor_.Beat(rank, {InAllReduce(7)}, now_);
      monitor_.Tick(now_);
    }
  }
  std::string Message() {
    now_ += milliseconds(60);
    monitor_.Tick(now_);
    return monitor_.failure() != nullptr ? monitor_.failure()->message : "";
  }

  SteadyTime now_{std::chrono::hours(1)};
  Monitor monitor_{3, kLimit};
};

TEST_F(MonitorTest, HealthyRanksAreNoFailure) {
  Pass(milliseconds(5000));
  EXPECT_FALSE(monitor_.suspects());
  for (int rank = 0; rank < 3; ++rank) monitor_.Leave(rank, now_);
  EXPECT_EQ(Message(), "");
  EXPECT_TRUE(monitor_.all_left());
}

TEST_F(MonitorTest, DeathIsDescribedWithExitAndOperation) {
  Pass(milliseconds(100));
  monitor_.Disconnect(1, now_);
  monitor_.Exit(1, "was killed by signal 9 (Killed)", true, now_);
  EXPECT_EQ(Message(),
            "rank 1 on host 'h' (process 101) was killed by signal 9 (Killed), last seen in "
            "AllReduce #7 of group 'world'. Of the others, rank 0 is in AllReduce #7 of group "
            "'world'; rank 2 is in AllReduce #7 of group 'world'");
  EXPECT_EQ(monitor_.failure()->rank, 1);
}

TEST_F(MonitorTest, SilenceIsAFailureAfterTheLimitOnly) {
  Pass(milliseconds(950), 2);
  EXPECT_FALSE(monitor_.suspects());
  Pass(milliseconds(100), 2);
  const std::string message = Message();
  EXPECT_NE(message.find("rank 2 on host 'h' (process 102) does not respond since"),
            std::string::npos)
      << message;
}

TEST_F(MonitorTest, ServerThatSleptBlamesNobody) {
  Pass(milliseconds(100));
  now_ += milliseconds(60'000);
  monitor_.Tick(now_);
  EXPECT_FALSE(monitor_.suspects());
}

TEST_F(MonitorTest, MinorityIsTheCulpritOfADivergence) {
  monitor_.Beat(1, {InAllReduce(7)}, now_);
  monitor_.Beat(2, {{"world", 1, CommKind::kBroadcast, 7, 16, true}}, now_);
  monitor_.Beat(0, {InAllReduce(7)}, now_);
  const std::string message = Message();
  EXPECT_TRUE(message.starts_with(
      "rank 2 on host 'h' (process 102) calls Broadcast #7 of group 'world' with 16 bytes while "
      "rank 0 calls AllReduce #7 of group 'world' with 4096 bytes: all ranks"))
      << message;
}

TEST(MonitorOrderTest, DivergenceIsDescribedAlikeInEveryOrder) {
  std::vector<int> order = {0, 1, 2, 3};
  do {
    const SteadyTime now{std::chrono::hours(1)};
    Monitor monitor(4, kLimit);
    for (uint32_t rank = 0; rank < 4; ++rank) ASSERT_TRUE(monitor.Join(rank, 4, "h", 9, now).ok());
    for (const int rank : order) monitor.Beat(rank, {InAllReduce(7, rank == 1 ? 8 : 4096)}, now);
    monitor.Tick(now + milliseconds(60));
    ASSERT_NE(monitor.failure(), nullptr);
    EXPECT_EQ(monitor.failure()->rank, 1);
    EXPECT_NE(monitor.failure()->message.find("with 8 bytes while rank 0 calls AllReduce #7"),
              std::string::npos)
        << monitor.failure()->message;
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(MonitorTest, LaterReportsCorrectTheCulpritOfADivergence) {
  monitor_.Beat(1, {{"world", 1, CommKind::kBroadcast, 7, 16, true}}, now_);
  monitor_.Beat(2, {InAllReduce(7)}, now_);
  monitor_.Tick(now_);
  monitor_.Beat(0, {InAllReduce(7)}, now_ + milliseconds(1));
  const std::string message = Message();
  EXPECT_TRUE(message.starts_with("rank 1 on host 'h' (process 101) calls Broadcast #7"))
      << message;
}

TEST_F(MonitorTest, DivergenceWaitsForRanksBehind) {
  monitor_.Beat(0, {InAllReduce(6)}, now_);
  monitor_.Beat(1, {{"world", 1, CommKind::kBroadcast, 7, 16, true}}, now_);
  monitor_.Beat(2, {InAllReduce(7)}, now_);
  monitor_.Beat(0, {InAllReduce(6)}, now_ + milliseconds(1));  // the answer to the suspicion
  monitor_.Beat(1, {{"world", 1, CommKind::kBroadcast, 7, 16, true}}, now_ + milliseconds(1));
  monitor_.Tick(now_ + milliseconds(2));
  EXPECT_EQ(monitor_.failure(), nullptr);
  monitor_.Beat(0, {InAllReduce(7)}, now_ + milliseconds(20));
  const std::string message = Message();
  EXPECT_TRUE(message.starts_with("rank 1 on host 'h' (process 101) calls Broadcast #7"))
      << message;
}

TEST_F(MonitorTest, DifferentSizesDiverge) {
  monitor_.Beat(0, {InAllReduce(7, 8)}, now_);
  monitor_.Beat(1, {InAllReduce(7, 16)}, now_);
  EXPECT_NE(Message().find("rank 1 on host 'h' (process 101) calls AllReduce #7"),
            std::string::npos);
}

TEST_F(MonitorTest, RanksAtDifferentOperationsDoNotDiverge) {
  monitor_.Beat(0, {InAllReduce(7, 8)}, now_);
  monitor_.Beat(1, {InAllReduce(8, 16)}, now_);
  monitor_.Beat(2, {{"rows", 2, CommKind::kBarrier, 7, 0, true}}, now_);
  EXPECT_EQ(Message(), "");
}

TEST_F(MonitorTest, DeathExplainsTheErrorsOfOthers) {
  monitor_.Fail(0, "connection closed by peer", now_);
  monitor_.Disconnect(2, now_ + milliseconds(5));
  monitor_.Exit(2, "was killed by signal 11 (Segmentation fault)", true, now_ + milliseconds(6));
  EXPECT_EQ(Message().substr(0, 73),
            "rank 2 on host 'h' (process 102) was killed by signal 11 (Segmentation fa");
}

TEST_F(MonitorTest, DivergenceExplainsTheErrorOfARank) {
  monitor_.Beat(0, {InAllReduce(7)}, now_);
  monitor_.Fail(0, "the message has another header", now_);
  monitor_.Beat(1, {{"world", 1, CommKind::kBarrier, 7, 0, true}}, now_);
  const std::string message = Message();
  EXPECT_TRUE(message.starts_with("rank 1 on host 'h' (process 101) calls Barrier #7")) << message;
}

TEST_F(MonitorTest, RankThatLeavesEarlyIsTheCulprit) {
  Pass(milliseconds(100));
  monitor_.Leave(1, now_);
  monitor_.Beat(0, {InAllReduce(8)}, now_);
  EXPECT_EQ(Message().substr(0, 54), "rank 1 on host 'h' (process 101) has left the job, whi");
}

TEST_F(MonitorTest, RefusesRanksThatDoNotBelong) {
  EXPECT_FALSE(monitor_.Join(3, 3, "h", 1, now_).ok());
  EXPECT_FALSE(monitor_.Join(0, 4, "h", 1, now_).ok());
  EXPECT_EQ(monitor_.Join(1, 3, "h", 1, now_).message(),
            "rank 1 on host 'h' (process 101) has joined the job already; start each rank once");
}

}  // namespace
}  // namespace msrt
