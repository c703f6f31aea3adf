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

TEST_P(Backends, EveryIndexOnce) {
  auto parallel = GetParam()(3);
  for (int64_t count : {0, 1, 2, 7, 1000}) {
    std::vector<std::atomic<int>> calls(static_cast<size_t>(count));
    ASSERT_TRUE(parallel->Run(count, [&](int64_t i) { ++calls[static_cast<size_t>(i)]; }).ok());
    for (const auto& c : calls) EXPECT_EQ(c, 1);
  }
}

TEST_P(Backends, RangesCoverWithoutOverlap) {
  auto parallel = GetParam()(2);
  std::atomic<int64_t> sum{0};
  ASSERT_TRUE(ParallelRanges(*parallel, 12345, 10, [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) sum += i;
              }).ok());
  EXPECT_EQ(sum, int64_t{12345} * 12344 / 2);
}

TEST_P(Backends, OutOfMemoryInATaskIsAnError) {
  auto parallel = GetParam()(2);
  const Status status = parallel->Run(100, [](int64_t i) {
    if (i == 50) throw std::bad_alloc();
  });
  EXPECT_EQ(status.code(), Code::kOutOfMemory);
  EXPECT_TRUE(parallel->Run(100, [](int64_t) {}).ok());
}

TEST_P(Backends, NestedCallsAndOtherThreads) {
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

// However many sessions run, no more threads are at work than the runtime was given.
TEST_P(Backends, NeverMoreAtWorkThanThreads) {
  constexpr int kThreads = 2;
  auto parallel = GetParam()(kThreads);
  std::atomic<int> working{0}, most{0};
  const auto busy = [&] {
    const int now = ++working;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
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
  EXPECT_LE(most, kThreads);
  EXPECT_EQ(most, kThreads) << "and the cores are used";
}

TEST_P(Backends, ExceptionsPassThroughOnTeam) {
  auto parallel = GetParam()(2);
  EXPECT_THROW(parallel->OnTeam([] { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(RunOnTeam(*parallel, [] { return 7; }), 7);
}

INSTANTIATE_TEST_SUITE_P(All, Backends, ::testing::Values(&MakeThreadPool, &MakeDefaultParallel));

}  // namespace
}  // namespace msrt
