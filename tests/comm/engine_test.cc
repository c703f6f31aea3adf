// Finding engines: the errors of those that are not there.
#include "core/comm/engine.h"

#include <gtest/gtest.h>

#include "tests/comm/running_ranks.h"

namespace msrt {
namespace {

TEST(EngineTest, MissingModuleNamesItsPackage) {
  const ScratchFolder folder;
  FolderStore store(folder.path());
  CommOptions options;
  options.module_folder = folder.path();
  for (const auto& [engine, package] :
       {std::pair("gloo", "libgloo-dev"), std::pair("mpi", "libopenmpi-dev")}) {
    const auto made = MakeCommunicator(engine, 0, 1, &store, options);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), Code::kNotFound);
    EXPECT_NE(made.status().message().find(package), std::string::npos) << made.status().message();
  }
}

TEST(EngineTest, RefusesImpossibleRequests) {
  const ScratchFolder folder;
  FolderStore store(folder.path());
  const auto code = [&](std::string_view engine, int rank, int size, Store* s) {
    const auto made = MakeCommunicator(engine, rank, size, s, {});
    return made.ok() ? Code::kOk : made.status().code();
  };
  EXPECT_EQ(code("pigeons", 0, 1, &store), Code::kInvalidArgument);
  EXPECT_EQ(code("shm", 2, 2, &store), Code::kInvalidArgument);
  EXPECT_EQ(code("shm", -1, 2, &store), Code::kInvalidArgument);
  EXPECT_EQ(code("shm", 0, 0, &store), Code::kInvalidArgument);
  EXPECT_EQ(code("shm", 0, 1, nullptr), Code::kInvalidArgument);
  EXPECT_EQ(code("shm", 0, 100000, &store), Code::kUnsupported);
  EXPECT_EQ(code("threads", 0, 2, &store), Code::kInvalidArgument);
  EXPECT_EQ(code("auto", 0, 2, nullptr), Code::kInvalidArgument);
}

TEST(EngineTest, OneRankNeedsNoStore) {
  const auto made = MakeCommunicator("auto", 0, 1, nullptr, {});
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ((*made)->engine(), "threads");
}

TEST(EngineTest, OneRankNeedsNoPeers) {
  EXPECT_EQ(RunInProcesses("auto", 1,
                           [](Communicator& comm) {
                             return comm.size() == 1 && comm.engine() == "shm"
                                        ? ""
                                        : "not one rank of shm";
                           }),
            "");
}

}  // namespace
}  // namespace msrt
