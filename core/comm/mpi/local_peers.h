// Notices that the process of a rank on this host has died. MPI does not, and mpirun needs two
// seconds to end the others.
#pragma once

#include <atomic>
#include <chrono>
#include <vector>

#include "core/base/status.h"

namespace msrt {

// One per process, as MPI is. Thread-safe.
class LocalPeers {
 public:
  static LocalPeers& OfProcess();

  // A collective of all ranks that mpirun has started. Later calls do nothing. A kernel that cannot
  // watch processes is no error.
  void Open();
  // An error if a rank on this host has ended. Ranks that end as they should wait for each other in
  // MPI_Finalize, so for a rank that waits for a message every end is a death. Looks only if the
  // last look was some time ago.
  Status Check();

 private:
  struct Peer {
    int rank = 0, process = 0, descriptor = -1;
  };
  std::vector<Peer> peers_;
  std::atomic<bool> opened_{false};
  std::atomic<int64_t> next_look_nanos_{0};
};

}  // namespace msrt
