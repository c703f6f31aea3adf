#include "core/base/parallel_for.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace msrt {
namespace {

class Backends : public ::testing::TestWithParam<std::unique_ptr<ParallelFor> (*)(int)> {};

TEST_P(Backends, RunsEveryIndexOnce) {
  auto parallel = GetParam()(3);
  for (int64_t count : {0, 1, 2, 7, 1000}) {
    std::vector<std::atomic<int>> calls(static_cast<size_t>(count));
    ASSERT_TRUE(parallel->Run(count, [&](int64_t i) { ++calls[static_cast<size_t>(i)]; }).ok());
    for (const auto& c : calls) EXPECT_EQ(c, 1);
  }
}

TEST_P(Backends, RangesCoverAllWithoutOverlap) {
  auto parallel = GetParam()(2);
  std::atomic<int64_t> sum{0};
  ASSERT_TRUE(ParallelRanges(*parallel, 12345, 10, [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) sum += i;
              }).ok());
  EXPECT_EQ(sum, int64_t{12345} * 12344 / 2);
}

TEST_P(Backends, OutOfMemoryInTaskIsAnError) {
  auto parallel = GetParam()(2);
  const Status status = parallel->Run(100, [](int64_t i) {
    if (i == 50) throw std::bad_alloc();
  });
  EXPECT_EQ(status.code(), Code::kOutOfMemory);
  EXPECT_TRUE(parallel->Run(100, [](int64_t) {}).ok());
}

TEST_P(Backends, NestedAndConcurrentCallsRunAllTasks) {
  auto parallel = GetParam()(2);
  std::atomic<int> calls{0};
  const auto work = [&] {
    for (int round = 0; round < 50; ++round) {
      parallel->OnTeam([&] {
        (void)parallel->Run(4, [&](int64_t) { (void)parallel->Run(3, [&](int64_t) { ++calls; }); });
        parallel->OnTeam([&] { ++calls; });
      });
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(work);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(calls, 4 * 50 * 13);
}

// However many sessions run, no more threads work than the runtime was given.
TEST_P(Backends, NeverRunsMoreThreadsThanGiven) {
  constexpr int kThreads = 2;
  auto parallel = GetParam()(kThreads);
  std::atomic<int> working{0}, max_working{0};
  const auto busy = [&] {
    const int now = ++working;
    for (int seen = max_working; now > seen && !max_working.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    --working;
  };
  std::vector<std::thread> callers;
  for (int c = 0; c < 8; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        parallel->OnTeam([&] {
          busy();  // the serial part of a run
          (void)parallel->Run(6, [&](int64_t) { busy(); });
        });
      }
    });
  }
  for (std::thread& c : callers) c.join();
  EXPECT_LE(max_working, kThreads);
  EXPECT_EQ(max_working, kThreads) << "all cores must be used";
}

TEST_P(Backends, ExceptionsPassThroughOnTeam) {
  auto parallel = GetParam()(2);
  EXPECT_THROW(parallel->OnTeam([] { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(RunOnTeam(*parallel, [] { return 7; }), 7);
}

// Calls from tasks and from bodies, of the same team and of another, in both directions at once,
// never wait for each other.
TEST_P(Backends, WorkingThreadNeverWaits) {
  auto one = GetParam()(2), other = GetParam()(2);
  std::atomic<int> calls{0};
  constexpr int kRounds = 20;
  const auto nest = [&](ParallelFor& outer, ParallelFor& inner) {
    for (int round = 0; round < kRounds; ++round) {
      ASSERT_TRUE(outer
                      .Run(2,
                           [&](int64_t) {
                             inner.OnTeam([&] {
                               outer.OnTeam([&] {
                                 ASSERT_TRUE(outer.Run(3, [&](int64_t) { ++calls; }).ok());
                               });
                               ASSERT_TRUE(inner.Run(2, [&](int64_t) { ++calls; }).ok());
                             });
                           })
                      .ok());
    }
  };
  std::thread there([&] { nest(*one, *other); }), back([&] { nest(*other, *one); }),
      alone([&] { nest(*one, *one); });
  there.join();
  back.join();
  alone.join();
  EXPECT_EQ(calls, 3 * kRounds * 2 * 5);
}

TEST_P(Backends, ExceptionsPassThroughFromTask) {
  auto parallel = GetParam()(2);
  std::atomic<int> caught{0};
  ASSERT_TRUE(parallel
                  ->Run(2,
                        [&](int64_t) {
                          EXPECT_THROW(parallel->OnTeam([] { throw std::runtime_error("no"); }),
                                       std::runtime_error);
                          ++caught;
                        })
                  .ok());
  EXPECT_EQ(caught, 2);
}

// A caller that waits for its turn stops waiting when it is cancelled or its time is over, and then
// does not block others.
TEST_P(Backends, WaitingCallerCanGiveUp) {
  constexpr int kThreads = 2;
  auto parallel = GetParam()(kThreads);
  std::atomic<bool> release{false};
  std::vector<std::thread> busy;
  for (int t = 0; t < kThreads; ++t) {
    busy.emplace_back([&] {
      parallel->OnTeam([&] {
        while (!release) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      });
    });
  }
  const auto in_time = [&] {
    return WaitLimit{.until = std::chrono::steady_clock::now() + std::chrono::milliseconds(20)};
  };
  while (parallel->TryOnTeam([] {}, in_time())) {
  }  // until all are at work
  std::atomic<bool> cancelled{false}, ran{false};
  std::thread waiting(
      [&] { EXPECT_FALSE(parallel->TryOnTeam([&] { ran = true; }, {.cancelled = &cancelled})); });
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  cancelled = true;
  parallel->WakeWaiting();
  waiting.join();
  EXPECT_FALSE(ran);
  EXPECT_FALSE(parallel->TryOnTeam([&] { ran = true; }, in_time()));
  release = true;
  for (std::thread& b : busy) b.join();
  // Calls that are withdrawn immediately, again and again, do not stop the team.
  std::vector<std::thread> hasty;
  for (int t = 0; t < 3; ++t) {
    hasty.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        (void)parallel->TryOnTeam(
            [] {}, {.until = std::chrono::steady_clock::now() + std::chrono::microseconds(i)});
      }
    });
  }
  for (std::thread& h : hasty) h.join();
  EXPECT_EQ(RunOnTeam(*parallel, [] { return 7; }), 7);
}

INSTANTIATE_TEST_SUITE_P(All, Backends, ::testing::Values(&MakeThreadPool, &MakeDefaultParallel));

}  // namespace
}  // namespace msrt
