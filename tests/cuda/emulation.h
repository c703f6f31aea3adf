// The state of the emulated CUDA that all its functions share: devices, living objects, counters,
// faults. The files driver_*.cc, nccl.cc and cublaslt.cc define the functions of the tables.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/cuda/device_memory.h"
#include "tests/cuda/emulated_cuda.h"
#include "tests/cuda/sanitizers.h"
#include "tests/cuda/stream.h"

namespace msrt::cuda::emulated {

// What an NVIDIA GPU of a compute capability has; numbers of the vendor's data sheets.
struct Properties {
  int capability;
  const char* name;
  int processors, shared_of_processor, shared_of_block, threads_of_processor;
  int clock_khz, memory_clock_khz, bus_bits, cache_bytes;
};
const Properties& PropertiesOf(int capability);

struct Pool {
  Device* device = nullptr;
  uint64_t threshold = 0;  // bytes that stay reserved when they are free
  uint64_t used = 0, reserved = 0, peak_used = 0, peak_reserved = 0;
  std::set<int> readers;  // other devices with access
};

struct Device {
  int index = 0;
  std::atomic<CUresult> error{CUDA_SUCCESS};  // sticky
  std::atomic<bool> is_lost{false};
  int retained = 0;
  std::set<int> peers;  // whose memory this one may access
  Pool default_pool;
  size_t plain_bytes = 0;  // of cuMemAlloc
  size_t used = 0, peak = 0;

  void SetError(CUresult new_error) {
    CUresult none = CUDA_SUCCESS;
    error.compare_exchange_strong(none, new_error);
  }
};

class Emulation {
 public:
  explicit Emulation(const EmulationOptions& options);
  ~Emulation();

  const EmulationOptions options;
  EmulationCounters counters;  // under `mutex`, as everything below that is not atomic
  mutable std::mutex mutex;
  std::vector<std::unique_ptr<Device>> devices;
  DeviceMemory memory;
  bool is_initialized = false;
  std::map<const void*, const char*> objects;  // living handles and their kinds
  std::map<uint64_t, size_t> pinned;           // host memory by address
  std::set<std::shared_ptr<Capture>> captures;
  std::set<Stream*> streams;
  std::vector<std::unique_ptr<Stream>> ended_streams;
  std::vector<Pool*> pools;
  const uint64_t generation;  // of this emulation among all of the process

  // Counts a call; returns the injected error, or success.
  CUresult BeginCall(const char* function);
  CUresult BeginWork();
  void EndWork();
  void ReportMisuse(const std::string& text);

  template <typename Handle>
  bool IsLiving(Handle handle, const char* kind) const {
    const auto found = objects.find(handle);
    return found != objects.end() && found->second == std::string(kind);
  }
  // The bytes [address, address + bytes) are in a living block that `device` may access. Reports
  // what is wrong with them otherwise. Without the lock: takes it.
  bool CheckAccess(const char* function, const Device& device, uint64_t address, size_t bytes,
                   Block* block);
  bool IsPinned(const void* address, size_t bytes) const;
  bool MayAccess(const Device& device, const Block& block) const;
  unsigned NextSeed();

  // Puts work into a stream, or into the graph that it records. `blocks` must live when it runs.
  CUresult Enqueue(Stream* stream, Work work, std::vector<Block> blocks, bool can_fail = true);

  std::map<std::string, int64_t> calls_of;
  int64_t fail_at, fail_work_at;
  CUresult fail_with, fail_work_with;
  int64_t work_count = 0;
  std::string failed_call, misuse;
  unsigned last_seed;
};

// The one that exists now.
Emulation* emulation();

// Begins every function of the tables.
class Call {
 public:
  explicit Call(const char* function) : error(emulation()->BeginCall(function)) {}

 private:
  const Unseen unseen_;

 public:
  const CUresult error;
};
// The text of a name before its macro changes it: cuMemAlloc, not cuMemAlloc_v2.
#define EMULATED_CALL(name) \
  const Call call(#name);   \
  if (call.error != CUDA_SUCCESS) return call.error

// The device of the current context of this thread, or null.
Device* CurrentDevice();

inline Stream* ToStream(CUstream stream) { return reinterpret_cast<Stream*>(stream); }
// A usable stream, or the error: no stream, a lost device.
CUresult CheckStream(CUstream stream);

// Definitions of the tables' functions, in the namespace.
#define EMULATED_DECLARE(f) decltype(::f) f;
MSRT_CUDA_DRIVER(EMULATED_DECLARE)
MSRT_CUBLASLT(EMULATED_DECLARE)
MSRT_NCCL(EMULATED_DECLARE)
#undef EMULATED_DECLARE

void KillNcclRank(ncclComm_t comm);
// Ends what communicators still wait for, so that streams can end.
void EndNccl();

}  // namespace msrt::cuda::emulated
