#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "core/base/clock.h"
#include "core/comm/engine.h"
#include "core/comm/shm_arena.h"
#include "tests/comm/conformance.h"

namespace msrt {
namespace {

std::string RunShm(int ranks, const RankBody& body, std::chrono::milliseconds stall_limit) {
  return RunInProcesses("shm", ranks, body, stall_limit);
}

TEST(ShmEngineTest, Conforms) { RunConformance({"shm", 8, RunShm}); }

// The operations run on the thread of their rank, which sleeps when the abort comes.
TEST(ShmEngineTest, AbortFromAnotherThreadEndsAllRanks) {
  const auto wait_for_abort = [](Communicator& comm) -> std::string {
    std::thread other;
    if (comm.rank() == 1) {
      other = std::thread([&] {
        usleep(30000);
        comm.Abort(DelegateError("rank 1 ran out of coffee"));
      });
    }
    std::byte byte{};
    // Nobody sends, so no operation can end by itself.
    const CommPart part{comm.rank() == 2 ? 0 : 2, &byte, 1};
    const StopWatch watch;
    const auto work = comm.Exchange({}, {&part, 1});
    const Status status = work.ok() ? (*work)->Wait({}) : work.status();
    const double millis = watch.Millis();
    if (other.joinable()) other.join();
    if (status.code() != Code::kDelegate ||
        status.message().find("ran out of coffee") == std::string::npos)
      return "not the reason: " + status.message();
    return millis < 1000 ? "" : StrCat("the abort took ", millis, " ms");
  };
  EXPECT_EQ(RunInProcesses("shm", 3, wait_for_abort), "");
}

TEST(ShmEngineTest, AutoChoosesIt) {
  const auto name = [](Communicator& comm) { return comm.engine() == "shm" ? "" : comm.engine(); };
  EXPECT_EQ(RunInProcesses("auto", 2, name), "");
}

TEST(ShmEngineTest, MissingRankEndsTheStart) {
  const ScratchFolder folder;
  FolderStore store(folder.path());
  CommOptions options;
  options.timeout = std::chrono::milliseconds(100);
  const auto late = MakeCommunicator("shm", 0, 2, &store, options);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.status().code(), Code::kDeadlineExceeded) << late.status().message();
  EXPECT_NE(late.status().message().find("1 of 2 ranks"), std::string::npos);
}

TEST(ShmEngineTest, RefusesForeignMemory) {
  EXPECT_FALSE(ShmArena::Open({1, HostId() + 1, getpid(), 0}, 2).ok());
  EXPECT_FALSE(ShmArena::Open({1, HostId(), getpid(), 9999}, 2).ok());
  auto arena = ShmArena::Create(2);
  ASSERT_TRUE(arena.ok());
  ShmNote note = (*arena)->note();
  EXPECT_TRUE(ShmArena::Open(note, 2).ok());
  EXPECT_FALSE(ShmArena::Open(note, 3).ok());
  note.nonce ^= 1;
  EXPECT_FALSE(ShmArena::Open(note, 2).ok());
}

TEST(ShmEngineTest, OthersNameStoppedRank) { EXPECT_EQ(CheckStoppedRanks("shm", 2), ""); }

TEST(ShmEngineTest, SurvivorsNameKilledRank) { EXPECT_EQ(CheckKilledRanks("shm", 25), ""); }

}  // namespace
}  // namespace msrt
