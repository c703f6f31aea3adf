// Counts of operations, for the whole process, so that a test can prove that something did or did
// not happen.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/abi/msrt.h"

namespace accelerator {

struct Counters {
  std::atomic<uint64_t> host_waits{0};    // event_wait and stream_synchronize
  std::atomic<uint64_t> stream_waits{0};  // stream_wait_event
  std::atomic<uint64_t> kernels{0};
  std::atomic<uint64_t> copies_to_device{0}, copies_to_host{0}, peer_copies{0};
  std::atomic<uint64_t> conversions{0}, host_allocations{0}, captures{0}, replays{0};
  std::atomic<uint64_t> packings{0};        // forms of parameters made
  std::atomic<uint64_t> urgent_streams{0};  // with a priority above 0
};
Counters& Count();

}  // namespace accelerator

// Returns the number of operations of this kind (a name in Counters) since the library was loaded;
// UINT64_MAX: there is no such kind.
extern "C" MSRT_API uint64_t msrt_accelerator_count(const char* kind);
