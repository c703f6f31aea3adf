// Sessions of ranks: failures and cancellation end all ranks, and the halo travels while the
// interior is computed.
#include "core/run/rank_session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "core/comm/thread_engine.h"
#include "core/passes/passes_testing.h"
#include "tests/ranks/rank_runs.h"

namespace msrt::testing {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

RankOptions TwoParts() {
  RankOptions options;
  options.compile.place.delegates = {"reference"};
  options.split.parts = {2};
  options.split.halos = HaloRule::kExchange;
  return options;
}

Net OneConvolution(const Dims& image) {
  Net net;
  const ValueId x = net.Input("x", image);
  net.graph().outputs = {net.Op("Conv", {x, net.Weight({image[1], image[1], 3, 3})},
                                {{"pads", std::vector<int64_t>{1, 1, 1, 1}}})};
  return net;
}

// An exchange takes at least so long.
class SlowCommunicator final : public Communicator {
 public:
  SlowCommunicator(std::unique_ptr<Communicator> to, std::chrono::milliseconds delay)
      : to_(std::move(to)), delay_(delay) {}
  int rank() const override { return to_->rank(); }
  int size() const override { return to_->size(); }
  const std::string& group() const override { return to_->group(); }
  const std::string& engine() const override { return to_->engine(); }
  CommCounters counters() const override { return to_->counters(); }
  Result<CommWorkPtr> Exchange(std::span<const CommPart> sends,
                               std::span<const CommPart> receives) override {
    MSRT_ASSIGN_OR_RETURN(CommWorkPtr work, to_->Exchange(sends, receives));
    return CommWorkPtr(new SlowWork(std::move(work), std::chrono::steady_clock::now() + delay_));
  }
  Result<CommWorkPtr> AllReduce(void* data, size_t count, CommType type, CommReduce reduce,
                                CommOrder order) override {
    return to_->AllReduce(data, count, type, reduce, order);
  }
  Result<CommWorkPtr> ReduceScatter(const void* send, void* receive, std::span<const size_t> counts,
                                    CommType type, CommReduce reduce, CommOrder order) override {
    return to_->ReduceScatter(send, receive, counts, type, reduce, order);
  }
  Result<CommWorkPtr> AllGather(const void* send, void* receive,
                                std::span<const size_t> bytes) override {
    return to_->AllGather(send, receive, bytes);
  }
  Result<CommWorkPtr> AllToAll(std::span<const CommPart> sends,
                               std::span<const CommPart> receives) override {
    return to_->AllToAll(sends, receives);
  }
  Result<CommWorkPtr> Broadcast(void* data, size_t bytes, int root) override {
    return to_->Broadcast(data, bytes, root);
  }
  Result<CommWorkPtr> Barrier() override { return to_->Barrier(); }
  Result<std::unique_ptr<Communicator>> Split(int color, int key,
                                              const std::string& group) override {
    return to_->Split(color, key, group);
  }
  Result<std::vector<std::unique_ptr<Communicator>>> SplitPairs(const std::string& group) override {
    return to_->SplitPairs(group);
  }
  void Abort(const Status& reason) override { to_->Abort(reason); }

 private:
  class SlowWork final : public CommWork {
   public:
    SlowWork(CommWorkPtr work, std::chrono::steady_clock::time_point until)
        : work_(std::move(work)), until_(until) {}
    bool done() const override {
      return work_->done() && std::chrono::steady_clock::now() >= until_;
    }
    Status Wait(const WaitLimit& limit) override {
      std::this_thread::sleep_until(until_);
      return work_->Wait(limit);
    }

   private:
    CommWorkPtr work_;
    const std::chrono::steady_clock::time_point until_;
  };
  const std::unique_ptr<Communicator> to_;
  const std::chrono::milliseconds delay_;
};

// Two ranks, each a thread with a runtime.
struct Pair {
  std::vector<std::unique_ptr<Communicator>> comms;
  std::vector<std::unique_ptr<RankSession>> sessions;
  std::vector<Status> statuses{2};
  std::vector<RankReport> reports{2};

  Pair(const Module& module, const Dims& image, const RankOptions& options, int delay_millis = 0) {
    auto made = MakeThreadCommunicators(2);
    EXPECT_TRUE(made.ok());
    for (auto& comm : *made) {
      comms.push_back(std::make_unique<SlowCommunicator>(std::move(comm),
                                                         std::chrono::milliseconds(delay_millis)));
      auto session =
          RankSession::Create(RankEnvironment(), module, {&image, 1}, options, comms.back().get());
      EXPECT_TRUE(session.ok()) << session.status().message();
      sessions.push_back(*std::move(session));
    }
  }
  void Run(const RankIo& io, const RunOptions& options = {}) {
    std::vector<std::thread> threads;
    for (size_t r = 0; r < 2; ++r) {
      threads.emplace_back([&, r] {
        auto report = sessions[r]->Run(io, options);
        statuses[r] = report.status();
        if (report.ok()) reports[r] = *report;
      });
    }
    for (std::thread& t : threads) t.join();
  }
};

RankIo NoIo() {
  RankIo io;
  io.read = [](size_t, const Box&, const TensorView& memory) {
    std::fill_n(memory.As<float>(), memory.dims.elements(), 1.0f);
    return OkStatus();
  };
  io.write = [](size_t, const Box&, const TensorView&) { return OkStatus(); };
  return io;
}

TEST(RankSession, TheHaloTravelsWhileTheInteriorIsComputed) {
  const Dims image{1, 16, 128, 64};
  Net net = OneConvolution(image);
  constexpr int kDelay = 30;
  RankOptions options = TwoParts();
  options.split.overlap = OverlapRule::kNever;
  Pair apart(net.module, image, options, kDelay);
  options.split.overlap = OverlapRule::kAlways;
  Pair together(net.module, image, options, kDelay);
  apart.Run(NoIo());
  ASSERT_TRUE(apart.statuses[0].ok()) << apart.statuses[0].message();
  EXPECT_GE(apart.reports[0].exchanges.nanos, kDelay * kMillisecond);
  EXPECT_GE(apart.reports[0].exchanges.exposed_nanos, kDelay * kMillisecond * 9 / 10);
  // Other programs may keep the threads from running for a while.
  int64_t least = INT64_MAX;
  for (int i = 0; i < 10 && least > kDelay * kMillisecond / 2; ++i) {
    together.Run(NoIo());
    ASSERT_TRUE(together.statuses[0].ok()) << together.statuses[0].message();
    EXPECT_GE(together.reports[0].exchanges.nanos, kDelay * kMillisecond);
    least = std::min(least, together.reports[0].exchanges.exposed_nanos);
  }
  EXPECT_LE(least, kDelay * kMillisecond / 2);
}

TEST(RankSession, AMemoryCapIsHard) {
  const Dims image{1, 16, 128, 64};
  Net net = OneConvolution(image);
  RankOptions options = TwoParts();
  Pair free(net.module, image, options);
  free.Run(NoIo());
  ASSERT_TRUE(free.statuses[0].ok() && free.statuses[1].ok()) << free.statuses[0].message();
  const size_t peaks[] = {free.reports[0].peak_bytes, free.reports[1].peak_bytes};
  const Result<size_t> expected = free.sessions[0]->ExpectedBytes();
  ASSERT_TRUE(expected.ok());
  EXPECT_GT(peaks[0], free.reports[0].memory_bytes);
  // Scratch memory of kernels is not known before they run.
  EXPECT_LE(*expected, peaks[0]);
  EXPECT_GE(*expected, peaks[0] / 2);
  options.memory_cap_bytes = std::max(peaks[0], peaks[1]);
  Pair enough(net.module, image, options);
  enough.Run(NoIo());
  EXPECT_TRUE(enough.statuses[0].ok()) << enough.statuses[0].message();
  options.memory_cap_bytes = std::min(peaks[0], peaks[1]) - 1;
  Pair less(net.module, image, options);
  less.Run(NoIo());
  EXPECT_EQ(less.statuses[0].code(), Code::kLimitExceeded) << less.statuses[0].message();
}

TEST(RankSession, ProgressRisesToTheEnd) {
  const Dims image{1, 2, 8, 8};
  Net net = OneConvolution(image);
  Pair pair(net.module, image, TwoParts());
  RankIo io = NoIo();
  std::mutex mutex;
  std::vector<double> fractions;
  io.progress = [&](double fraction) {
    const std::lock_guard lock(mutex);
    fractions.push_back(fraction);
  };
  pair.Run(io);
  ASSERT_FALSE(fractions.empty());
  for (double fraction : fractions) EXPECT_TRUE(fraction >= 0 && fraction <= 1.000001) << fraction;
  EXPECT_NEAR(*std::max_element(fractions.begin(), fractions.end()), 1, 1e-6);
}

TEST(RankSession, AFailureOfOneRankEndsAll) {
  const Dims image{1, 2, 8, 8};
  Net net = OneConvolution(image);
  for (const bool reading : {true, false}) {
    Pair pair(net.module, image, TwoParts());
    RankIo io = NoIo();
    const auto fail = [](size_t, const Box& box, const TensorView&) {
      return box[2].begin == 0 ? OkStatus() : MakeStatus(Code::kIo, "the disk is full");
    };
    (reading ? io.read : io.write) = fail;
    pair.Run(io);
    EXPECT_EQ(pair.statuses[1].code(), Code::kIo);
    if (reading) {
      EXPECT_NE(pair.statuses[0].message().find("the disk is full"), std::string::npos)
          << pair.statuses[0].message();
    }
    pair.Run(NoIo());  // the job has ended
    EXPECT_FALSE(pair.statuses[0].ok());
    EXPECT_FALSE(pair.statuses[1].ok());
  }
}

TEST(RankSession, ADeadlineEndsTheWaitForARankThatNeverRuns) {
  const Dims image{1, 2, 8, 8};
  Net net = OneConvolution(image);
  Pair pair(net.module, image, TwoParts());
  RunOptions options;
  options.deadline_nanos = RankEnvironment()->clock->NowNanos() + 20 * kMillisecond;
  const auto report = pair.sessions[0]->Run(NoIo(), options);
  EXPECT_EQ(report.status().code(), Code::kDeadlineExceeded) << report.status().message();
}

TEST(RankSession, CancelEndsTheWaitForARankThatNeverRuns) {
  const Dims image{1, 2, 8, 8};
  Net net = OneConvolution(image);
  Pair pair(net.module, image, TwoParts());
  std::atomic<bool> ended = false;
  std::thread canceller([&] {
    while (!ended) {
      pair.sessions[0]->Cancel();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  const auto report = pair.sessions[0]->Run(NoIo(), {});
  ended = true;
  canceller.join();
  EXPECT_EQ(report.status().code(), Code::kCancelled) << report.status().message();
}

TEST(RankSession, RefusesAGridOfAnotherSizeAndSharedThreads) {
  const Dims image{1, 2, 8, 8};
  Net net = OneConvolution(image);
  auto comms = MakeThreadCommunicators(2);
  ASSERT_TRUE(comms.ok());
  RankOptions options = TwoParts();
  const auto environment = RankEnvironment();
  auto first =
      RankSession::Create(environment, net.module, {&image, 1}, options, (*comms)[0].get());
  ASSERT_TRUE(first.ok()) << first.status().message();
  auto second =
      RankSession::Create(environment, net.module, {&image, 1}, options, (*comms)[1].get());
  EXPECT_NE(second.status().message().find("its own runtime"), std::string::npos)
      << second.status().message();
  options.split.parts = {3};
  auto third =
      RankSession::Create(RankEnvironment(), net.module, {&image, 1}, options, (*comms)[1].get());
  EXPECT_NE(third.status().message().find("the grid has 3 ranks"), std::string::npos)
      << third.status().message();
}

}  // namespace
}  // namespace msrt::testing
