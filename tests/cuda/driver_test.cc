// The emulated driver keeps CUDA's rules, and reports what breaks them.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/cuda/testing.h"

namespace msrt::cuda {
namespace {

std::vector<float> Numbers(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i) + 1;
  return values;
}

TEST(EmulatedDriverTest, KernelsRunInStreamOrder) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    EmulatedCuda cuda({.seed = seed, .delays = true, .shuffle_threads = true});
    {
      TestGpu gpu(cuda.api());
      const CUdeviceptr x = gpu.Upload(Numbers(1000)), y = gpu.Allocate(4000);
      for (int i = 0; i < 4; ++i) {
        ASSERT_EQ(gpu.Launch(gpu.stream, "test_scale", 4, 256, 0, i % 2 == 0 ? x : y,
                             i % 2 == 0 ? y : x, 1000, 2.0f),
                  CUDA_SUCCESS);
      }
      const auto result = gpu.Download<float>(x, 1000);
      for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(result[i], 16 * (static_cast<float>(i) + 1));
      EXPECT_EQ(cuda.misuse(), "");
      EXPECT_EQ(cuda.counters().launches, 4);
      EXPECT_EQ(cuda.used_bytes(0), 8000u);
      EXPECT_NE(cuda.LiveObjects(), "");
    }
    EXPECT_EQ(cuda.LiveObjects(), "");
  }
}

TEST(EmulatedDriverTest, PropertiesFollowTheGeneration) {
  for (const auto& [capability, shared] :
       {std::pair{75, 65536}, {80, 166912}, {90, 232448}, {100, 232448}, {120, 101376}}) {
    EmulatedCuda cuda({.devices = 2, .compute_capability = capability});
    const CudaDriver cu = cuda.api().driver;
    int value = 0, can = 0;
    EXPECT_EQ(cu.cuDeviceGetCount(&value), CUDA_ERROR_NOT_INITIALIZED);
    ASSERT_EQ(cu.cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cu.cuDeviceGetCount(&value), CUDA_SUCCESS);
    EXPECT_EQ(value, 2);
    ASSERT_EQ(
        cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 1),
        CUDA_SUCCESS);
    EXPECT_EQ(value, shared);
    ASSERT_EQ(cu.cuDeviceCanAccessPeer(&can, 0, 1), CUDA_SUCCESS);
    EXPECT_EQ(can, 1);
    CUdevice device;
    EXPECT_EQ(cu.cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
  }
}

TEST(EmulatedDriverTest, HostCannotTouchDeviceMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        EmulatedCuda cuda;
        TestGpu gpu(cuda.api());
        *reinterpret_cast<volatile char*>(gpu.Allocate(100)) = 1;
      },
      "");
}

TEST(EmulatedDriverTest, NewMemoryIsUndefined) {
  EmulatedCuda cuda;
  TestGpu gpu(cuda.api());
  for (float value : gpu.Download<float>(gpu.Allocate(400), 100)) EXPECT_TRUE(std::isnan(value));
}

#ifndef __SANITIZE_ADDRESS__
TEST(EmulatedDriverTest, WritesBeyondABlockAreReported) {
  EmulatedCuda cuda;
  TestGpu gpu(cuda.api());
  CUdeviceptr x;
  ASSERT_EQ(gpu.cu.cuMemAlloc(&x, 400), CUDA_SUCCESS);
  ASSERT_EQ(gpu.Launch(gpu.stream, "test_overrun", 1, 1, 0, x, 100, 1), CUDA_SUCCESS);
  EXPECT_EQ(gpu.cu.cuMemFree(x), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_NE(cuda.misuse().find("beyond its last byte"), std::string::npos) << cuda.misuse();
}
#endif

TEST(EmulatedDriverTest, ArgumentsMustPointToLivingBlocksOfReachableDevices) {
  EmulatedCuda cuda({.devices = 2});
  TestGpu other(cuda.api(), 1);
  const CUdeviceptr foreign = other.Allocate(4000);
  {
    TestGpu gpu(cuda.api(), 0);
    const CUdeviceptr y = gpu.Allocate(4000);
    // Access to the peer's memory must be enabled.
    ASSERT_EQ(gpu.cu.cuCtxEnablePeerAccess(other.context, 0), CUDA_SUCCESS);
    EXPECT_EQ(gpu.cu.cuCtxEnablePeerAccess(other.context, 0),
              CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    ASSERT_EQ(gpu.Launch(gpu.stream, "test_scale", 1, 32, 0, foreign, y, 10, 1.0f), CUDA_SUCCESS);
    EXPECT_EQ(gpu.cu.cuStreamSynchronize(gpu.stream), CUDA_SUCCESS);
    EXPECT_EQ(cuda.misuse(), "");
  }
  {
    other.MakeCurrent();
    TestGpu gpu(cuda.api(), 0);
    const CUdeviceptr mine = gpu.Allocate(4000);
    other.MakeCurrent();
    // The other direction was not enabled: the error is the kernel's, and sticky.
    ASSERT_EQ(other.Launch(other.stream, "test_scale", 1, 32, 0, mine, foreign, 10, 1.0f),
              CUDA_SUCCESS);
    EXPECT_EQ(other.cu.cuStreamSynchronize(other.stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(other.Launch(other.stream, "test_scale", 1, 32, 0, foreign, foreign, 10, 1.0f),
              CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_NE(cuda.misuse().find("no access"), std::string::npos) << cuda.misuse();
    // Device 0 goes on.
    gpu.MakeCurrent();
    EXPECT_EQ(gpu.Launch(gpu.stream, "test_scale", 1, 32, 0, mine, mine, 10, 1.0f), CUDA_SUCCESS);
    EXPECT_EQ(gpu.cu.cuStreamSynchronize(gpu.stream), CUDA_SUCCESS);
  }
}

TEST(EmulatedDriverTest, FreedBlocksAreDead) {
  EmulatedCuda cuda;
  TestGpu gpu(cuda.api());
  CUdeviceptr x;
  ASSERT_EQ(gpu.cu.cuMemAlloc(&x, 400), CUDA_SUCCESS);
  ASSERT_EQ(gpu.cu.cuMemFree(x), CUDA_SUCCESS);
  EXPECT_EQ(gpu.cu.cuMemFree(x), CUDA_ERROR_INVALID_VALUE);
  std::vector<float> values(100);
  EXPECT_EQ(gpu.cu.cuMemcpyHtoDAsync(x, values.data(), 400, gpu.stream), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(gpu.Launch(gpu.stream, "test_scale", 1, 32, 0, x, x, 10, 1.0f), CUDA_SUCCESS);
  EXPECT_EQ(gpu.cu.cuStreamSynchronize(gpu.stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(EmulatedDriverTest, LaunchesAreChecked) {
  EmulatedCuda cuda({.compute_capability = 75});
  TestGpu gpu(cuda.api());
  const CUdeviceptr x = gpu.Allocate(4096);
  CUfunction function;
  EXPECT_EQ(gpu.cu.cuModuleGetFunction(&function, gpu.module, "no_kernel"), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(gpu.Launch(gpu.stream, "test_scale", 1, 1025, 0, x, x, 1, 1.0f),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(gpu.Launch(gpu.stream, "test_scale", 0, 32, 0, x, x, 1, 1.0f),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(gpu.Launch(gpu.stream, "test_reverse", 1, 32, 60000, x, x, 1),
            CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(gpu.cu.cuModuleGetFunction(&function, gpu.module, "test_reverse"), CUDA_SUCCESS);
  const auto attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  EXPECT_EQ(gpu.cu.cuFuncSetAttribute(function, attribute, 70000), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(gpu.cu.cuFuncSetAttribute(function, attribute, 60000), CUDA_SUCCESS);
  EXPECT_EQ(gpu.Launch(gpu.stream, "test_reverse", 1, 32, 60000, x, x, 1), CUDA_SUCCESS);
  EXPECT_EQ(gpu.cu.cuStreamSynchronize(gpu.stream), CUDA_SUCCESS);
  // A divergent barrier is a failed launch.
  EXPECT_EQ(gpu.Launch(gpu.stream, "test_divergent", 1, 32, 0, x, 0), CUDA_SUCCESS);
  EXPECT_EQ(gpu.cu.cuStreamSynchronize(gpu.stream), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_NE(cuda.misuse().find("divergent barrier"), std::string::npos) << cuda.misuse();
}

TEST(EmulatedDriverTest, PointersInDeviceMemoryAreLoadedByTheKernel) {
  EmulatedCuda cuda;
  TestGpu gpu(cuda.api());
  std::vector<CUdeviceptr> table;
  for (int i = 0; i < 3; ++i) table.push_back(gpu.Upload(std::vector<float>(10, 1.0f)));
  const CUdeviceptr pointers = gpu.Upload(table);
  ASSERT_EQ(gpu.Launch(gpu.stream, "test_table", 3, 4, 0, pointers, 10, 2.0f), CUDA_SUCCESS);
  for (CUdeviceptr entry : table) {
    EXPECT_EQ(gpu.Download<float>(entry, 10), std::vector<float>(10, 3.0f));
  }
}

// Two streams: the second reads what the first wrote.
TEST(EmulatedDriverTest, StreamsWaitForEventsWithoutTheHost) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    EmulatedCuda cuda({.devices = 2, .seed = seed, .delays = true});
    TestGpu second(cuda.api(), 1), first(cuda.api(), 0);
    const CUdeviceptr x = first.Upload(Numbers(500)), y = first.Allocate(2000);
    CUevent written;
    ASSERT_EQ(first.cu.cuEventCreate(&written, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    second.MakeCurrent();
    const CUdeviceptr z = second.Allocate(2000), w = second.Allocate(2000);
    const int64_t waits = cuda.counters().host_waits;
    first.MakeCurrent();
    ASSERT_EQ(first.Launch(first.stream, "test_scale", 2, 256, 0, x, y, 500, 2.0f), CUDA_SUCCESS);
    ASSERT_EQ(first.cu.cuEventRecord(written, first.stream), CUDA_SUCCESS);
    EXPECT_EQ(first.cu.cuEventRecord(written, second.stream), CUDA_ERROR_INVALID_HANDLE);
    second.MakeCurrent();
    ASSERT_EQ(second.cu.cuStreamWaitEvent(second.stream, written, 0), CUDA_SUCCESS);
    ASSERT_EQ(second.cu.cuMemcpyPeerAsync(z, second.context, y, first.context, 2000, second.stream),
              CUDA_SUCCESS);
    ASSERT_EQ(second.Launch(second.stream, "test_scale", 2, 256, 0, z, w, 500, 2.0f), CUDA_SUCCESS);
    EXPECT_EQ(cuda.counters().host_waits, waits);
    const auto result = second.Download<float>(w, 500);
    for (size_t i = 0; i < 500; ++i) ASSERT_EQ(result[i], 4 * (static_cast<float>(i) + 1));
    EXPECT_EQ(second.cu.cuEventDestroy(written), CUDA_SUCCESS);
    EXPECT_EQ(second.cu.cuEventDestroy(written), CUDA_ERROR_INVALID_HANDLE);
  }
}

TEST(EmulatedDriverTest, PinnedCopiesDoNotWait) {
  EmulatedCuda cuda({.delays = true});
  TestGpu gpu(cuda.api());
  float* host = gpu.Pinned<float>(200);
  for (int i = 0; i < 100; ++i) host[i] = static_cast<float>(i);
  const CUdeviceptr x = gpu.Allocate(400);
  ASSERT_EQ(gpu.cu.cuMemcpyHtoDAsync(x, host, 400, gpu.stream), CUDA_SUCCESS);
  ASSERT_EQ(gpu.cu.cuMemcpyDtoHAsync(host + 100, x, 400, gpu.stream), CUDA_SUCCESS);
  EXPECT_EQ(cuda.counters().host_waits, 0);
  ASSERT_EQ(gpu.cu.cuStreamSynchronize(gpu.stream), CUDA_SUCCESS);
  EXPECT_EQ(cuda.counters().host_waits, 1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(host[100 + i], static_cast<float>(i));
  EXPECT_EQ(cuda.counters().pageable_copies, 0);
}

TEST(EmulatedDriverTest, PoolsHaveALimitAndAreTrimmed) {
  EmulatedCuda cuda({.memory_bytes = 1 << 20});
  TestGpu gpu(cuda.api());
  CUmemoryPool pool;
  ASSERT_EQ(gpu.cu.cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
  uint64_t threshold = ~uint64_t{0}, bytes = 0;
  ASSERT_EQ(gpu.cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
            CUDA_SUCCESS);
  CUdeviceptr x, y;
  ASSERT_EQ(gpu.cu.cuMemAllocFromPoolAsync(&x, 600000, pool, gpu.stream), CUDA_SUCCESS);
  EXPECT_EQ(gpu.cu.cuMemAllocFromPoolAsync(&y, 600000, pool, gpu.stream), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(gpu.cu.cuMemFreeAsync(x, gpu.stream), CUDA_SUCCESS);
  ASSERT_EQ(gpu.cu.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes),
            CUDA_SUCCESS);
  EXPECT_EQ(bytes, 600000u);
  ASSERT_EQ(gpu.cu.cuMemAllocFromPoolAsync(&y, 600000, pool, gpu.stream), CUDA_SUCCESS);
  ASSERT_EQ(gpu.cu.cuMemFreeAsync(y, gpu.stream), CUDA_SUCCESS);
  EXPECT_EQ(gpu.cu.cuMemFreeAsync(y, gpu.stream), CUDA_ERROR_INVALID_VALUE);
  size_t free_bytes, total;
  ASSERT_EQ(gpu.cu.cuMemGetInfo(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes, (size_t{1} << 20) - 600000);
  ASSERT_EQ(gpu.cu.cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
  ASSERT_EQ(gpu.cu.cuMemGetInfo(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes, total);
}

// A fork: two branches that only the graph's edges order.
TEST(EmulatedDriverTest, GraphsReplayWhatStreamsRecorded) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    EmulatedCuda cuda({.seed = seed, .delays = true});
    TestGpu gpu(cuda.api());
    const CUdeviceptr x = gpu.Upload(Numbers(100)), a = gpu.Allocate(400), b = gpu.Allocate(400);
    CUstream side;
    CUevent fork, join;
    ASSERT_EQ(gpu.cu.cuStreamCreateWithPriority(&side, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
    ASSERT_EQ(gpu.cu.cuEventCreate(&fork, 0), CUDA_SUCCESS);
    ASSERT_EQ(gpu.cu.cuEventCreate(&join, 0), CUDA_SUCCESS);
    ASSERT_EQ(gpu.cu.cuStreamBeginCapture(gpu.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
              CUDA_SUCCESS);
    gpu.Launch(gpu.stream, "test_scale", 1, 128, 0, x, x, 100, 2.0f);
    gpu.cu.cuEventRecord(fork, gpu.stream);
    gpu.cu.cuStreamWaitEvent(side, fork, 0);
    gpu.Launch(side, "test_scale", 1, 128, 0, x, a, 100, 3.0f);
    gpu.Launch(gpu.stream, "test_scale", 1, 128, 0, x, b, 100, 5.0f);
    gpu.cu.cuEventRecord(join, side);
    gpu.cu.cuStreamWaitEvent(gpu.stream, join, 0);
    struct {
      CUdeviceptr a, sum;
    } pair{a, b};
    gpu.Launch(gpu.stream, "test_add", 1, 128, 0, pair, 100);
    CUgraph graph;
    ASSERT_EQ(gpu.cu.cuStreamEndCapture(gpu.stream, &graph), CUDA_SUCCESS);
    EXPECT_EQ(cuda.counters().launches, 0);
    CUgraphExec exec;
    ASSERT_EQ(gpu.cu.cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    ASSERT_EQ(gpu.cu.cuGraphDestroy(graph), CUDA_SUCCESS);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(gpu.cu.cuGraphLaunch(exec, gpu.stream), CUDA_SUCCESS);
    const auto result = gpu.Download<float>(b, 100);
    for (size_t i = 0; i < 100; ++i) ASSERT_EQ(result[i], 64 * (static_cast<float>(i) + 1));
    EXPECT_EQ(cuda.counters().launches, 12);
    EXPECT_EQ(cuda.counters().graph_launches, 3);
    gpu.cu.cuGraphExecDestroy(exec);
    gpu.cu.cuEventDestroy(fork);
    gpu.cu.cuEventDestroy(join);
    gpu.cu.cuStreamDestroy(side);
  }
}

TEST(EmulatedDriverTest, CapturesRefuseWhatCannotBeRecorded) {
  EmulatedCuda cuda;
  TestGpu gpu(cuda.api());
  CUgraph graph;
  CUdeviceptr pointer;
  const auto begin = [&] {
    ASSERT_EQ(gpu.cu.cuStreamBeginCapture(gpu.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
              CUDA_SUCCESS);
  };
  begin();
  EXPECT_EQ(gpu.cu.cuStreamSynchronize(gpu.stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(gpu.cu.cuStreamEndCapture(gpu.stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin();
  EXPECT_EQ(gpu.cu.cuMemAlloc(&pointer, 100), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(gpu.cu.cuStreamEndCapture(gpu.stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  // A branch that does not come back.
  CUstream side;
  CUevent fork;
  ASSERT_EQ(gpu.cu.cuStreamCreateWithPriority(&side, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
  ASSERT_EQ(gpu.cu.cuEventCreate(&fork, 0), CUDA_SUCCESS);
  const CUdeviceptr x = gpu.Allocate(400);
  begin();
  gpu.cu.cuEventRecord(fork, gpu.stream);
  gpu.cu.cuStreamWaitEvent(side, fork, 0);
  gpu.Launch(side, "test_scale", 1, 32, 0, x, x, 1, 1.0f);
  EXPECT_EQ(gpu.cu.cuEventSynchronize(fork), CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_EQ(gpu.cu.cuStreamEndCapture(gpu.stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  // Both streams work again.
  EXPECT_EQ(gpu.cu.cuStreamSynchronize(gpu.stream), CUDA_SUCCESS);
  EXPECT_EQ(gpu.cu.cuStreamSynchronize(side), CUDA_SUCCESS);
  gpu.cu.cuStreamDestroy(side);
  gpu.cu.cuEventDestroy(fork);
}

TEST(EmulatedDriverTest, GraphsDoNotUseFreedBlocks) {
  EmulatedCuda cuda;
  TestGpu gpu(cuda.api());
  CUdeviceptr x;
  ASSERT_EQ(gpu.cu.cuMemAlloc(&x, 400), CUDA_SUCCESS);
  ASSERT_EQ(gpu.cu.cuStreamBeginCapture(gpu.stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  gpu.Launch(gpu.stream, "test_scale", 1, 32, 0, x, x, 1, 1.0f);
  CUgraph graph;
  CUgraphExec exec;
  ASSERT_EQ(gpu.cu.cuStreamEndCapture(gpu.stream, &graph), CUDA_SUCCESS);
  ASSERT_EQ(gpu.cu.cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(gpu.cu.cuMemFree(x), CUDA_SUCCESS);
  EXPECT_EQ(gpu.cu.cuGraphLaunch(exec, gpu.stream), CUDA_SUCCESS);
  EXPECT_EQ(gpu.cu.cuStreamSynchronize(gpu.stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  gpu.cu.cuGraphExecDestroy(exec);
  gpu.cu.cuGraphDestroy(graph);
}

// Each call fails once: the caller gets the error, and the name is known.
TEST(EmulatedDriverTest, EveryCallCanFail) {
  EmulatedCuda cuda;
  int64_t calls = 0;
  for (int64_t n = -1; n < std::max<int64_t>(calls, 1); ++n) {
    cuda.FailAt(n, CUDA_ERROR_UNKNOWN);
    const int64_t before = cuda.counters().calls;
    const CudaDriver cu = cuda.api().driver;
    CUcontext context = nullptr;
    CUstream stream = nullptr;
    CUdeviceptr x = 0;
    bool failed = cu.cuInit(0) != CUDA_SUCCESS;
    failed |= cu.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS;
    if (context != nullptr) {
      const bool pushed = cu.cuCtxPushCurrent(context) == CUDA_SUCCESS;
      failed |= !pushed;
      failed |= cu.cuStreamCreateWithPriority(&stream, 1, 0) != CUDA_SUCCESS;
      failed |= cu.cuMemAlloc(&x, 100) != CUDA_SUCCESS;
      failed |= cu.cuMemFree(x) != CUDA_SUCCESS;
      if (stream != nullptr) failed |= cu.cuStreamDestroy(stream) != CUDA_SUCCESS;
      if (pushed) failed |= cu.cuCtxPopCurrent(&context) != CUDA_SUCCESS;
      failed |= cu.cuDevicePrimaryCtxRelease(0) != CUDA_SUCCESS;
    }
    if (n < 0) calls = cuda.counters().calls - before;
    EXPECT_EQ(failed, n >= 0) << n;
    EXPECT_EQ(cuda.failed_call().empty(), n < 0) << n;
    EXPECT_EQ(cuda.LiveObjects(), "") << cuda.failed_call();
  }
  EXPECT_EQ(calls, 9);
}

TEST(EmulatedDriverTest, FailedWorkIsStickyUntilTheContextIsNew) {
  EmulatedCuda cuda;
  {
    TestGpu gpu(cuda.api());
    const CUdeviceptr x = gpu.Allocate(400);
    cuda.FailWorkAt(1, CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(gpu.cu.cuMemsetD8Async(x, 0, 400, gpu.stream), CUDA_SUCCESS);
    EXPECT_EQ(gpu.cu.cuStreamSynchronize(gpu.stream), CUDA_SUCCESS);
    EXPECT_EQ(gpu.cu.cuMemsetD8Async(x, 0, 400, gpu.stream), CUDA_SUCCESS);
    EXPECT_EQ(gpu.cu.cuStreamSynchronize(gpu.stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(gpu.cu.cuMemsetD8Async(x, 0, 400, gpu.stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  EXPECT_EQ(cuda.LiveObjects(), "");
  {
    TestGpu gpu(cuda.api());
    EXPECT_EQ(gpu.cu.cuStreamSynchronize(gpu.stream), CUDA_SUCCESS);
    cuda.LoseDevice(0);
    EXPECT_EQ(gpu.cu.cuStreamSynchronize(gpu.stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  CUcontext context;
  EXPECT_EQ(cuda.api().driver.cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
}

}  // namespace
}  // namespace msrt::cuda
