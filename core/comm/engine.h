// Finds the engine of a communicator at run time. "threads" is made by thread_engine.h, because its
// ranks share a process, and here only for a single rank; "shm" is part of the library; "mpi" and
// "gloo" are modules beside it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/comm/communicator.h"
#include "core/comm/job/control.h"
#include "core/comm/job/store.h"

namespace msrt {

struct CommOptions {
  std::string group = "world";
  // Distinguishes groups, and attempts of one job, that use the same store.
  std::string key = "comm";
  // For Gloo: the local address or network interface to listen on. Empty: the one of the host name.
  std::string address;
  std::chrono::milliseconds timeout{30000};  // until all ranks are connected
  // An operation that waits longer for a peer fails on all ranks. MakeJobCommunicator takes the
  // limit of the job if there is none here; otherwise 10 minutes are the default.
  std::optional<std::chrono::milliseconds> stall_limit;
  // Folder of the engine modules. Empty: beside the library or program, or in ../lib from there.
  std::string module_folder;
  // The control connection of this rank (Job::control), which outlives the communicator. Null: only
  // the engine finds failures.
  Control* control = nullptr;
};

// True if this process was started by mpirun, so that "mpi" needs neither rank, size nor store.
bool StartedByMpi();

// A collective of all ranks. `engine` is "threads", "shm", "mpi", "gloo" or "auto". The latter is
// shm if all ranks are on one host, else Gloo. Without a store it is MPI if the process was started
// by mpirun, and threads for a single rank. For "mpi" without a store rank and size are not used:
// MPI tells them. The store outlives the communicator.
Result<std::unique_ptr<Communicator>> MakeCommunicator(std::string_view engine, int rank, int size,
                                                       Store* store, const CommOptions& options);

}  // namespace msrt
