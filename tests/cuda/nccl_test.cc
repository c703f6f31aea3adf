// The emulated NCCL: results, abort, errors of other ranks.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <latch>
#include <thread>

#include "core/base/half.h"
#include "tests/cuda/testing.h"

namespace msrt::cuda {
namespace {

struct Rank {
  TestGpu& gpu;
  const Nccl& nccl;
  ncclComm_t comm;
  int rank;
  cudaStream_t stream() const { return reinterpret_cast<cudaStream_t>(gpu.stream); }
};

// Runs body for each rank, in a thread and on a device of its own.
void RunRanks(const EmulatedCuda& cuda, int ranks, const std::function<void(Rank&)>& body,
              bool destroy = true) {
  const CudaApi api = cuda.api();
  ncclUniqueId id;
  ASSERT_EQ(api.nccl.ncclGetUniqueId(&id), ncclSuccess);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      TestGpu gpu(api, r);
      ncclComm_t comm = nullptr;
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = r % 2;  // both kinds
      const ncclResult_t started = api.nccl.ncclCommInitRankConfig(&comm, ranks, id, r, &config);
      ASSERT_TRUE(started == ncclSuccess || (started == ncclInProgress && r % 2 == 0));
      ncclResult_t error = ncclInProgress;
      while (error == ncclInProgress) {
        ASSERT_EQ(api.nccl.ncclCommGetAsyncError(comm, &error), ncclSuccess);
      }
      ASSERT_EQ(error, ncclSuccess);
      Rank rank{gpu, api.nccl, comm, r};
      body(rank);
      if (destroy) {
        EXPECT_EQ(api.nccl.ncclCommDestroy(comm), ncclSuccess);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

template <typename T>
void TestReductions(ncclDataType_t type, std::vector<ncclRedOp_t> ops) {
  constexpr int kRanks = 3, kCount = 50;
  EmulatedCuda cuda({.devices = kRanks, .delays = true});
  RunRanks(cuda, kRanks, [&](Rank& r) {
    for (ncclRedOp_t op : ops) {
      std::vector<T> mine(kCount * kRanks);
      for (size_t i = 0; i < mine.size(); ++i) {
        mine[i] = static_cast<T>(static_cast<float>((i + static_cast<size_t>(r.rank)) % 5 + 1));
      }
      const CUdeviceptr x = r.gpu.Upload(mine), y = r.gpu.Allocate(mine.size() * sizeof(T));
      auto* send = reinterpret_cast<void*>(x);
      auto* receive = reinterpret_cast<void*>(y);
      ASSERT_EQ(r.nccl.ncclReduceScatter(send, receive, kCount, type, op, r.comm, r.stream()),
                ncclSuccess);
      const auto part = r.gpu.template Download<T>(y, kCount);
      // In place.
      ASSERT_EQ(r.nccl.ncclAllReduce(send, send, mine.size(), type, op, r.comm, r.stream()),
                ncclSuccess);
      const auto all = r.gpu.template Download<T>(x, mine.size());
      for (size_t i = 0; i < all.size(); ++i) {
        double expected = 0;
        for (int s = 0; s < kRanks; ++s) {
          const double value = static_cast<double>((i + static_cast<size_t>(s)) % 5 + 1);
          if (s == 0) {
            expected = value;
          } else if (op == ncclMin || op == ncclMax) {
            expected = op == ncclMin ? std::min(expected, value) : std::max(expected, value);
          } else {
            expected = op == ncclProd ? expected * value : expected + value;
          }
        }
        if (op == ncclAvg)
          expected = static_cast<double>(static_cast<T>(static_cast<float>(expected / kRanks)));
        ASSERT_NEAR(static_cast<double>(all[i]), expected, expected / 100) << op;
      }
      for (size_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(static_cast<double>(part[i]),
                  static_cast<double>(all[static_cast<size_t>(r.rank) * kCount + i]));
      }
    }
  });
  EXPECT_EQ(cuda.misuse(), "");
  EXPECT_EQ(cuda.LiveObjects(), "");
}

TEST(EmulatedNcclTest, ReducesEveryType) {
  const std::vector<ncclRedOp_t> all = {ncclSum, ncclProd, ncclMin, ncclMax, ncclAvg};
  TestReductions<float>(ncclFloat32, all);
  TestReductions<double>(ncclFloat64, all);
  TestReductions<msrt::Half>(ncclFloat16, all);
  TestReductions<msrt::BFloat16>(ncclBfloat16, all);
  TestReductions<int32_t>(ncclInt32, {ncclSum, ncclProd, ncclMin, ncclMax});
  TestReductions<int64_t>(ncclInt64, {ncclSum, ncclProd, ncclMin, ncclMax});
  TestReductions<uint8_t>(ncclUint8, {ncclSum, ncclProd, ncclMin, ncclMax});
}

TEST(EmulatedNcclTest, GathersBroadcastsAndExchanges) {
  constexpr int kRanks = 4;
  for (unsigned seed = 0; seed < 4; ++seed) {
    EmulatedCuda cuda({.devices = kRanks, .seed = seed, .delays = true});
    RunRanks(cuda, kRanks, [&](Rank& r) {
      const CUdeviceptr x = r.gpu.Upload(std::vector<int>(10, r.rank + 1));
      const CUdeviceptr y = r.gpu.Allocate(40 * kRanks), z = r.gpu.Allocate(80);
      auto* mine = reinterpret_cast<char*>(x);
      auto* all = reinterpret_cast<char*>(y);
      auto* halo = reinterpret_cast<char*>(z);
      ASSERT_EQ(r.nccl.ncclAllGather(mine, all, 10, ncclInt32, r.comm, r.stream()), ncclSuccess);
      const auto gathered = r.gpu.Download<int>(y, 10 * kRanks);
      for (int i = 0; i < 10 * kRanks; ++i) ASSERT_EQ(gathered[static_cast<size_t>(i)], i / 10 + 1);
      // Both neighbours of a ring at once: without the group this would wait for ever.
      const int left = (r.rank + kRanks - 1) % kRanks, right = (r.rank + 1) % kRanks;
      ASSERT_EQ(r.nccl.ncclGroupStart(), ncclSuccess);
      r.nccl.ncclSend(mine, 10, ncclInt32, left, r.comm, r.stream());
      r.nccl.ncclSend(mine, 10, ncclInt32, right, r.comm, r.stream());
      r.nccl.ncclRecv(halo, 10, ncclInt32, left, r.comm, r.stream());
      r.nccl.ncclRecv(halo + 40, 10, ncclInt32, right, r.comm, r.stream());
      ASSERT_EQ(r.nccl.ncclGroupEnd(), ncclSuccess);
      const auto received = r.gpu.Download<int>(z, 20);
      for (size_t i = 0; i < 20; ++i) ASSERT_EQ(received[i], (i < 10 ? left : right) + 1);
      ASSERT_EQ(r.nccl.ncclBroadcast(mine, mine, 10, ncclInt32, 2, r.comm, r.stream()),
                ncclSuccess);
      ASSERT_EQ(r.gpu.Download<int>(x, 10), std::vector<int>(10, 3));
    });
    EXPECT_EQ(cuda.misuse(), "");
  }
}

TEST(EmulatedNcclTest, OneThreadRunsAllRanksInAGroup) {
  EmulatedCuda cuda({.devices = 2, .delays = true});
  const CudaApi api = cuda.api();
  {
    TestGpu a(api, 0), b(api, 1);
    ncclUniqueId id;
    ncclComm_t comms[2];
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ASSERT_EQ(api.nccl.ncclGetUniqueId(&id), ncclSuccess);
    api.nccl.ncclGroupStart();
    a.MakeCurrent();
    api.nccl.ncclCommInitRankConfig(&comms[0], 2, id, 0, &config);
    b.MakeCurrent();
    api.nccl.ncclCommInitRankConfig(&comms[1], 2, id, 1, &config);
    ASSERT_EQ(api.nccl.ncclGroupEnd(), ncclSuccess);
    const CUdeviceptr y = b.Upload(std::vector<float>(8, 2.0f));
    a.MakeCurrent();
    const CUdeviceptr x = a.Upload(std::vector<float>(8, 1.0f));
    api.nccl.ncclGroupStart();
    for (int r = 0; r < 2; ++r) {
      auto* data = reinterpret_cast<void*>(r == 0 ? x : y);
      api.nccl.ncclAllReduce(data, data, 8, ncclFloat32, ncclSum, comms[r],
                             reinterpret_cast<cudaStream_t>(r == 0 ? a.stream : b.stream));
    }
    ASSERT_EQ(api.nccl.ncclGroupEnd(), ncclSuccess);
    EXPECT_EQ(a.Download<float>(x, 8), std::vector<float>(8, 3.0f));
    EXPECT_EQ(b.Download<float>(y, 8), std::vector<float>(8, 3.0f));
    for (ncclComm_t comm : comms) EXPECT_EQ(api.nccl.ncclCommDestroy(comm), ncclSuccess);
  }
  EXPECT_EQ(cuda.LiveObjects(), "");
}

TEST(EmulatedNcclTest, SplitsByColourAndKey) {
  EmulatedCuda cuda({.devices = 4});
  RunRanks(cuda, 4, [&](Rank& r) {
    ncclComm_t part = nullptr;
    const int color = r.rank == 3 ? NCCL_SPLIT_NOCOLOR : r.rank % 2;
    const ncclResult_t result = r.nccl.ncclCommSplit(r.comm, color, -r.rank, &part, nullptr);
    ASSERT_TRUE(result == ncclSuccess || result == ncclInProgress);
    if (r.rank == 3) {
      EXPECT_EQ(part, nullptr);
      return;
    }
    ncclResult_t error = ncclInProgress;
    while (error == ncclInProgress) r.nccl.ncclCommGetAsyncError(part, &error);
    const CUdeviceptr x = r.gpu.Upload(std::vector<int>(1, 1 << r.rank));
    const CUdeviceptr y = r.gpu.Upload(std::vector<int>(2, 0));
    ASSERT_EQ(r.nccl.ncclAllGather(reinterpret_cast<void*>(x), reinterpret_cast<void*>(y), 1,
                                   ncclInt32, part, r.stream()),
              ncclSuccess);
    const auto result_of_part = r.gpu.Download<int>(y, 2);
    EXPECT_EQ(result_of_part,
              r.rank % 2 == 0 ? (std::vector<int>{4, 1}) : (std::vector<int>{2, 0}));
    EXPECT_EQ(r.nccl.ncclCommDestroy(part), ncclSuccess);
  });
}

// Rank 0 waits for a rank that never comes; the abort ends its operation.
TEST(EmulatedNcclTest, AbortEndsWhatWaits) {
  for (int kind = 0; kind < 3; ++kind) {
    EmulatedCuda cuda({.devices = 2});
    RunRanks(
        cuda, 2,
        [&](Rank& r) {
          const CUdeviceptr x = r.gpu.Upload(std::vector<float>(4, 1.0f));
          auto* data = reinterpret_cast<void*>(x);
          if (r.rank == 0 && kind == 0) {
            r.nccl.ncclAllReduce(data, data, 4, ncclFloat32, ncclSum, r.comm, r.stream());
          } else if (r.rank == 0 && kind == 1) {
            r.nccl.ncclSend(data, 4, ncclFloat32, 1, r.comm, r.stream());
          } else if (r.rank == 0) {
            r.nccl.ncclRecv(data, 4, ncclFloat32, 1, r.comm, r.stream());
          }
          if (r.rank == 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            EXPECT_EQ(r.gpu.cu.cuStreamQuery(r.gpu.stream), CUDA_ERROR_NOT_READY);
          }
          EXPECT_EQ(r.nccl.ncclCommAbort(r.comm), ncclSuccess);
          EXPECT_EQ(r.gpu.cu.cuStreamSynchronize(r.gpu.stream), CUDA_SUCCESS);
        },
        false);
    EXPECT_EQ(cuda.LiveObjects(), "");
  }
}

TEST(EmulatedNcclTest, AKilledRankIsReportedToItsPeers) {
  EmulatedCuda cuda({.devices = 3});
  std::latch started(3);
  RunRanks(
      cuda, 3,
      [&](Rank& r) {
        started.arrive_and_wait();
        if (r.rank == 1) {
          cuda.KillRank(r.comm);
        } else {
          const CUdeviceptr x = r.gpu.Upload(std::vector<float>(4, 1.0f));
          auto* data = reinterpret_cast<void*>(x);
          r.nccl.ncclAllReduce(data, data, 4, ncclFloat32, ncclSum, r.comm, r.stream());
          ncclResult_t error = ncclSuccess;
          while (error == ncclSuccess) r.nccl.ncclCommGetAsyncError(r.comm, &error);
          EXPECT_EQ(error, ncclRemoteError);
        }
        EXPECT_EQ(r.nccl.ncclCommAbort(r.comm), ncclSuccess);
      },
      false);
}

TEST(EmulatedNcclTest, DifferentOperationsAreAnError) {
  EmulatedCuda cuda({.devices = 2});
  RunRanks(
      cuda, 2,
      [&](Rank& r) {
        const CUdeviceptr x = r.gpu.Upload(std::vector<float>(4, 1.0f));
        auto* data = reinterpret_cast<void*>(x);
        const size_t count = r.rank == 0 ? 4 : 3;
        r.nccl.ncclAllReduce(data, data, count, ncclFloat32, ncclSum, r.comm, r.stream());
        ncclResult_t error = ncclSuccess;
        while (error == ncclSuccess) r.nccl.ncclCommGetAsyncError(r.comm, &error);
        EXPECT_EQ(error, ncclInvalidUsage);
        EXPECT_EQ(r.nccl.ncclCommAbort(r.comm), ncclSuccess);
      },
      false);
  EXPECT_NE(cuda.misuse().find("different operations"), std::string::npos);
}

TEST(EmulatedNcclTest, AbortEndsAStartThatWaitsForRanks) {
  EmulatedCuda cuda({.devices = 2});
  const CudaApi api = cuda.api();
  {
    TestGpu gpu(api, 0);
    ncclUniqueId id;
    ncclComm_t comm;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ASSERT_EQ(api.nccl.ncclGetUniqueId(&id), ncclSuccess);
    ASSERT_EQ(api.nccl.ncclCommInitRankConfig(&comm, 2, id, 0, &config), ncclInProgress);
    ncclResult_t error;
    ASSERT_EQ(api.nccl.ncclCommGetAsyncError(comm, &error), ncclSuccess);
    EXPECT_EQ(error, ncclInProgress);
    EXPECT_EQ(api.nccl.ncclCommAbort(comm), ncclSuccess);
  }
  EXPECT_EQ(cuda.LiveObjects(), "");
}

TEST(EmulatedNcclTest, CollectivesAreRecordedInGraphs) {
  EmulatedCuda cuda({.devices = 2, .delays = true});
  RunRanks(cuda, 2, [&](Rank& r) {
    const CUdeviceptr x = r.gpu.Upload(std::vector<float>(4, 1.0f));
    auto* data = reinterpret_cast<void*>(x);
    ASSERT_EQ(r.gpu.cu.cuStreamBeginCapture(r.gpu.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
              CUDA_SUCCESS);
    r.nccl.ncclAllReduce(data, data, 4, ncclFloat32, ncclSum, r.comm, r.stream());
    CUgraph graph;
    CUgraphExec exec;
    ASSERT_EQ(r.gpu.cu.cuStreamEndCapture(r.gpu.stream, &graph), CUDA_SUCCESS);
    ASSERT_EQ(r.gpu.cu.cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(r.gpu.cu.cuGraphLaunch(exec, r.gpu.stream), CUDA_SUCCESS);
    EXPECT_EQ(r.gpu.Download<float>(x, 4), std::vector<float>(4, 8.0f));
    r.gpu.cu.cuGraphExecDestroy(exec);
    r.gpu.cu.cuGraphDestroy(graph);
  });
}

}  // namespace
}  // namespace msrt::cuda
