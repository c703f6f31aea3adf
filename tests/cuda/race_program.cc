// Runs one program on the emulated CUDA, right or with a fault, for race_test.cc: the thread
// sanitizer must report the missing barrier and the missing wait although the results are right,
// and the address sanitizer the access beyond a block.
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "tests/cuda/testing.h"

namespace {

using msrt::cuda::TestGpu;

// With or without the barrier between the writes and the reads of shared memory. The values are not
// compared: the sanitizer must find the race, not the result.
bool Barrier(TestGpu& gpu, bool right) {
  std::vector<int> values(64);
  for (int i = 0; i < 64; ++i) values[static_cast<size_t>(i)] = i;
  const CUdeviceptr x = gpu.Upload(values), y = gpu.Allocate(256);
  gpu.Launch(gpu.stream, "test_reverse", 1, 64, 256, x, y, right ? 1 : 0);
  return gpu.cu.cuStreamSynchronize(gpu.stream) == CUDA_SUCCESS;
}

// A second stream reads what the first wrote. It starts when that has ended, as the emulation
// knows, so that the result is right without the wait, too.
bool Wait(const msrt::cuda::EmulatedCuda& cuda, TestGpu& gpu, bool right) {
  CUstream side;
  CUevent written;
  gpu.cu.cuStreamCreateWithPriority(&side, CU_STREAM_NON_BLOCKING, 0);
  gpu.cu.cuEventCreate(&written, CU_EVENT_DISABLE_TIMING);
  const CUdeviceptr x = gpu.Upload(std::vector<float>(64, 1.0f));
  const CUdeviceptr y = gpu.Allocate(256), z = gpu.Allocate(256);
  gpu.cu.cuStreamSynchronize(gpu.stream);
  const int64_t finished = cuda.counters().finished_work;
  gpu.Launch(gpu.stream, "test_scale", 1, 64, 0, x, y, 64, 2.0f);
  gpu.cu.cuEventRecord(written, gpu.stream);
  while (cuda.counters().finished_work == finished) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (right) gpu.cu.cuStreamWaitEvent(side, written, 0);
  gpu.Launch(side, "test_scale", 1, 64, 0, y, z, 64, 2.0f);
  const bool result = gpu.Download<float>(z, 64, side) == std::vector<float>(64, 4.0f);
  gpu.cu.cuStreamSynchronize(gpu.stream);
  gpu.cu.cuEventDestroy(written);
  gpu.cu.cuStreamDestroy(side);
  return result;
}

bool Bounds(TestGpu& gpu, bool right) {
  const CUdeviceptr x = gpu.Allocate(400);
  gpu.Launch(gpu.stream, "test_overrun", 1, 1, 0, x, 100, right ? 0 : 1);
  return gpu.cu.cuStreamSynchronize(gpu.stream) == CUDA_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string program = argv[1];
  const bool right = std::string(argv[2]) == "right";
  msrt::cuda::EmulatedCuda cuda;
  TestGpu gpu(cuda.api());
  const bool result = program == "barrier" ? Barrier(gpu, right)
                      : program == "wait"  ? Wait(cuda, gpu, right)
                                           : Bounds(gpu, right);
  std::printf("%s\n", result ? "result is right" : "result is wrong");
  return result ? 0 : 1;
}
