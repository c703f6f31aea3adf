#include "core/base/openmp_spin.h"

#include <gtest/gtest.h>

namespace msrt {
namespace {

// Two threads, the second of which is on a core for a part of the time.
class FakeTimes final : public SpinControl {
 public:
  FakeTimes() : SpinControl(2) { SetThread(0), SetThread(1); }

  void Pass(double millis, double share) {
    nanos_ += millis * 1e6;
    second_thread_nanos_ += millis * 1e6 * share;
  }
  void Run(double millis, double share) {
    Begin();
    Pass(millis, share);
    Check();
  }
  void EndSecondThread() { second_is_gone_ = true; }

 private:
  int64_t Now() const override { return static_cast<int64_t>(nanos_); }
  std::optional<int64_t> ThreadTime(size_t number) const override {
    if (number == 0) return Now();
    if (second_is_gone_) return std::nullopt;
    return static_cast<int64_t>(second_thread_nanos_);
  }

  double nanos_ = 1e9, second_thread_nanos_ = 5e8;
  bool second_is_gone_ = false;
};

TEST(SpinControl, SpinsLongWhileThreadsHaveTheirCores) {
  FakeTimes times;
  for (int run = 0; run < 100; ++run) {
    times.Run(5, run % 2 == 0 ? 0.97 : 0.85);
    times.Pass(50, 0);  // between runs the team sleeps
    ASSERT_TRUE(times.spins_long());
  }
}

TEST(SpinControl, SpinsShortWhereAThreadLosesItsCore) {
  FakeTimes times;
  times.Run(15, 0.5);
  EXPECT_FALSE(times.spins_long());
}

TEST(SpinControl, NoticesInsideALongRun) {
  FakeTimes times;
  times.Begin();
  for (int step = 0; step < 20; ++step) times.Pass(1, 0.5), times.Check();
  EXPECT_FALSE(times.spins_long());
}

TEST(SpinControl, ShortRunsAddUp) {
  FakeTimes times;
  for (int run = 0; run < 200; ++run) times.Run(0.2, 0.5);
  EXPECT_FALSE(times.spins_long());
}

TEST(SpinControl, TriesAgainEachTimeLaterAndRecovers) {
  FakeTimes times;
  double pause = 0;
  for (int round = 0; round < 8; ++round) {
    times.Run(15, 0.5);
    ASSERT_FALSE(times.spins_long());
    double waited = 0;
    for (; !times.spins_long() && waited < 10'000; waited += 1) times.Run(1, 0.5);
    EXPECT_TRUE(times.spins_long());
    EXPECT_LE(waited, 2001);
    if (pause < 1000) {
      EXPECT_GT(waited, 1.9 * pause);
    }
    pause = waited;
    times.Pass(1, 0);  // observed runs are not adjacent
  }
  times.Run(15, 1);  // quiet again
  times.Pass(1, 0);
  times.Run(15, 0.5);
  double waited = 0;
  for (; !times.spins_long() && waited < 10'000; waited += 1) times.Run(1, 0.5);
  EXPECT_LE(waited, 101);
}

TEST(SpinControl, AThreadThatIsGoneDoesNotCount) {
  FakeTimes times;
  times.EndSecondThread();
  times.Run(15, 0);
  EXPECT_TRUE(times.spins_long());
}

}  // namespace
}  // namespace msrt
