#include "core/comm/job/rank_watch.h"

#include <gtest/gtest.h>

#include "core/comm/thread_engine.h"

namespace msrt {
namespace {

using std::chrono::milliseconds;

// Ranks that are threads, each with a watch and a communicator in which it works.
class Ranks {
 public:
  Ranks(int size, const WatchLimits& limits) {
    Result<std::vector<std::unique_ptr<Communicator>>> made = MakeThreadCommunicators(size);
    EXPECT_TRUE(made.ok());
    worlds_ = *std::move(made);
    watches_.resize(worlds_.size());
    for (size_t r = 0; r < worlds_.size(); ++r)
      work_.push_back(std::make_shared<std::atomic<uint64_t>>(0));
    ForEach([&](size_t r) {
      auto pairs = worlds_[r]->SplitPairs("watch");
      EXPECT_TRUE(pairs.ok());
      watches_[r] =
          std::make_unique<RankWatch>(static_cast<int>(r), limits, *std::move(pairs),
                                      std::vector<const Communicator*>{worlds_[r].get()}, work_[r]);
    });
  }

  template <typename Body>
  void ForEach(const Body& body) {
    std::vector<std::thread> threads;
    for (size_t r = 0; r < worlds_.size(); ++r) threads.emplace_back([&, r] { body(r); });
    for (std::thread& thread : threads) thread.join();
  }

  // The rank works for so long.
  void Work(size_t rank, milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
      work_[rank]->fetch_add(1);
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  Status Barrier(size_t rank) {
    MSRT_ASSIGN_OR_RETURN(const CommWorkPtr work, worlds_[rank]->Barrier());
    return work->Wait({});
  }
  Communicator& world(size_t rank) { return *worlds_[rank]; }
  RankWatch& watch(size_t rank) { return *watches_[rank]; }

 private:
  std::vector<std::unique_ptr<Communicator>> worlds_;
  std::vector<std::shared_ptr<std::atomic<uint64_t>>> work_;
  std::vector<std::unique_ptr<RankWatch>> watches_;
};

constexpr WatchLimits kLimits{.silence = milliseconds(2000), .stall = milliseconds(200)};

TEST(RankWatch, RanksThatWaitForOneThatWorksAreNotBlamed) {
  Ranks ranks(3, kLimits);
  ranks.ForEach([&](size_t r) {
    ranks.watch(r).Start();
    if (r == 2) ranks.Work(r, 4 * kLimits.stall);
    const Status status = ranks.Barrier(r);
    EXPECT_TRUE(status.ok()) << status.message();
    ranks.watch(r).Stop();
  });
}

// As in training, whose gradients have a communicator of their own.
TEST(RankWatch, RanksThatWaitInASplitAreNotBlamed) {
  Ranks ranks(3, kLimits);
  ranks.ForEach([&](size_t r) {
    auto split = ranks.world(r).Split(0, static_cast<int>(r), "split");
    ASSERT_TRUE(split.ok());
    ranks.watch(r).Start();
    if (r == 1) ranks.Work(r, 4 * kLimits.stall);
    auto work = (*split)->Barrier();
    const Status status = work.ok() ? (*work)->Wait({}) : work.status();
    EXPECT_TRUE(status.ok()) << status.message();
    ranks.watch(r).Stop();
  });
}

TEST(RankWatch, StuckRankIsNamedByAllThatWaitForIt) {
  for (size_t stuck = 0; stuck < 3; ++stuck) {
    Ranks ranks(3, kLimits);
    ranks.ForEach([&](size_t r) {
      ranks.watch(r).Start();
      if (r == stuck) std::this_thread::sleep_for(5 * kLimits.stall);
      const Status status = ranks.Barrier(r);
      EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
      EXPECT_NE(status.message().find("rank " + std::to_string(stuck) + " on host"),
                std::string::npos)
          << status.message();
      EXPECT_NE(status.message().find("is stuck"), std::string::npos) << status.message();
      ranks.watch(r).Stop();
    });
  }
}

// A rank that is stopped as a process sends no beats; here it does not start its watch.
TEST(RankWatch, RankWithoutBeatsIsNamed) {
  Ranks ranks(2, kLimits);
  ranks.ForEach([&](size_t r) {
    if (r == 1) return;
    ranks.watch(r).Start();
    const Status status = ranks.Barrier(r);
    EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
    EXPECT_NE(status.message().find("rank 1 has not begun within"), std::string::npos)
        << status.message();
    ranks.watch(r).Stop();
  });
}

TEST(RankWatch, RanksThatAllWaitForEachOtherEndWithAnError) {
  Ranks ranks(2, kLimits);
  ranks.ForEach([&](size_t r) {
    ranks.watch(r).Start();
    ranks.watch(r).set_waits(true);
    std::this_thread::sleep_for(5 * kLimits.stall);
    const Status status = ranks.Barrier(r);
    EXPECT_NE(status.message().find("no rank has done anything for"), std::string::npos)
        << status.message();
    ranks.watch(r).Stop();
  });
}

TEST(RankWatch, StartsAgainAfterStop) {
  Ranks ranks(2, kLimits);
  ranks.ForEach([&](size_t r) {
    for (int round = 0; round < 3; ++round) {
      ranks.watch(r).Start();
      EXPECT_TRUE(ranks.Barrier(r).ok());
      ranks.watch(r).Stop();
    }
  });
}

}  // namespace
}  // namespace msrt
