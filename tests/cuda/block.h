// Runs kernels on the calling thread, block by block. The threads of a block run one after the
// other on one stack as long as none waits; a thread that waits at a barrier or a shuffle keeps its
// stack, and the others go on with another (Fiber). So a kernel without barriers costs a function
// call per thread.
//
// Errors instead of undefined behaviour: threads at different barriers (named by their lines), a
// barrier that a thread has left behind by returning, masks that are not full. With the thread
// sanitizer each thread of a block is a fiber of its own and only barriers order them: a missing
// one is a reported race.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "delegates/cuda/kernels/kernel_runtime.h"

namespace msrt::cuda {

struct LaunchShape {
  host::Index3 grid{1, 1, 1}, block{1, 1, 1};
  size_t shared_bytes = 0;
};

struct LaunchOptions {
  unsigned seed = 0;
  bool shuffle = false;      // threads and blocks in random order
  bool check_races = false;  // needs the thread sanitizer
  // The host's address of a byte of device memory; null: the pointer is in no living block.
  void* (*translate)(const void* device_pointer) = nullptr;
};

// Returns an empty text or the error that stopped the kernel.
std::string RunKernel(const host::Kernel& kernel, void* const* arguments, const LaunchShape& shape,
                      const LaunchOptions& options);

}  // namespace msrt::cuda
