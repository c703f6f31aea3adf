// CUDA without a GPU: fills the tables of delegates/cuda/api.h with a driver, NCCL and cublasLt
// that run on the host, so that the object files of the delegate are tested unchanged. A stream is
// a thread; device memory is at addresses that the host cannot touch; kernels run in their host
// form (delegates/cuda/kernels/kernel_host.h), found by name. The emulation checks what the GPU
// would leave undefined: dead or foreign blocks in arguments, writes beyond a block, barriers that
// some threads miss, streams of another context. Under the thread sanitizer only CUDA's own rules
// order work (stream order, events, synchronisation), so that a missing one is a reported race.
//
// The tables are plain functions: there is one EmulatedCuda at a time. What the tables made must be
// destroyed before it; LiveObjects lists what was not.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "delegates/cuda/api.h"

namespace msrt::cuda {

struct EmulationOptions {
  int devices = 1;
  int compute_capability = 90;  // 75, 80, 90, 100 or 120: the properties of T4, A100, H100, ...
  size_t memory_bytes = size_t{256} << 20;  // of each device
  unsigned seed = 1;    // of the order of threads, blocks and graph nodes, and of the delays
  bool delays = false;  // streams pause at random between operations
  bool shuffle_threads = false;  // threads and blocks of a kernel run in random order
  bool peers = true;             // devices can access each other
  // Under the thread sanitizer: each thread of a block is a thread for the sanitizer, which costs
  // microseconds a thread. Off: blocks are ordered, streams are checked all the same.
  bool check_races = true;
  // The fail_at-th call (from 0) returns fail_with, in the error codes of its library; -1: none.
  // Calls that free something do so nevertheless.
  int64_t fail_at = -1;
  CUresult fail_with = CUDA_ERROR_OUT_OF_MEMORY;
  // The fail_work_at-th kernel, copy or memset of all streams fails when it runs: the error is
  // sticky, as the GPU's are. -1: none.
  int64_t fail_work_at = -1;
  CUresult fail_work_with = CUDA_ERROR_LAUNCH_FAILED;
  bool has_blas = true, has_nccl = true;  // false: the library is missing
};

struct EmulationCounters {
  int64_t calls = 0;            // of all functions of the tables that can fail
  int64_t syncs = 0;            // cuStreamSynchronize, cuEventSynchronize
  int64_t pageable_copies = 0;  // from or to host memory that is not pinned: the host waits
  int64_t host_waits = 0;       // both, and frees that wait: everything that stops the host
  int64_t allocations = 0;      // device memory, from pools or not, and pinned memory
  int64_t finished_work = 0;    // kernels, copies, memsets and others that streams have run
  int64_t launches = 0;         // kernels, also those of graphs
  int64_t graph_launches = 0;
  int64_t copies = 0, copied_bytes = 0;  // also peer_copies
  int64_t peer_copies = 0;
  int64_t matmuls = 0, collectives = 0;
  int64_t modules_loaded = 0, streams_created = 0, events_created = 0;
};

class EmulatedCuda {
 public:
  explicit EmulatedCuda(const EmulationOptions& options = {});
  ~EmulatedCuda();
  EmulatedCuda(const EmulatedCuda&) = delete;
  EmulatedCuda& operator=(const EmulatedCuda&) = delete;

  // The tables. The delegate takes a copy of them.
  CudaApi api() const;

  EmulationCounters counters() const;
  int64_t CallsOf(const std::string& function) const;

  // From now on, the n-th call (from 0) fails once; a negative n: none.
  void FailAt(int64_t n, CUresult error = CUDA_ERROR_OUT_OF_MEMORY);
  // The n-th piece of work fails when it runs.
  void FailWorkAt(int64_t n, CUresult error = CUDA_ERROR_LAUNCH_FAILED);
  // Name of the function that was made to fail; empty: none was.
  std::string failed_call() const;

  // The device is lost: whatever uses it returns `error` from now on.
  void LoseDevice(int device, CUresult error = CUDA_ERROR_ILLEGAL_ADDRESS);
  // The rank dies: its operations never run; its peers get ncclRemoteError from
  // ncclCommGetAsyncError, and their operations wait until they abort.
  void KillRank(ncclComm_t comm);

  // Describes the latest misuse: wrong arguments of a launch, a divergent barrier, a write beyond
  // a block, operations of ranks that differ. Empty: there was none.
  std::string misuse() const;

  // What has not been destroyed or freed, one line each; empty: nothing.
  std::string LiveObjects() const;

  size_t used_bytes(int device) const;  // in living blocks
  size_t peak_bytes(int device) const;

 private:
  CudaApi api_;
};

}  // namespace msrt::cuda
