#include "core/comm/mpi/local_peers.h"

#include <mpi.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

namespace msrt {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kInterval{20};

// Process ids mean the same for processes of one namespace.
long long PidNamespace() {
  struct stat of_file {};
  return stat("/proc/self/ns/pid", &of_file) == 0 ? static_cast<long long>(of_file.st_ino) : 0;
}

}  // namespace

LocalPeers& LocalPeers::OfProcess() {
  static LocalPeers peers;
  return peers;
}

void LocalPeers::Open() {
  if (opened_.exchange(true)) return;
  int world_rank = 0, size = 0, rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm host = MPI_COMM_NULL;
  if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host) !=
      MPI_SUCCESS)
    return;
  MPI_Comm_size(host, &size);
  MPI_Comm_rank(host, &rank);
  const long long mine[3] = {world_rank, getpid(), PidNamespace()};
  std::vector<long long> all(3 * static_cast<size_t>(size));
  const int code = MPI_Allgather(mine, 3, MPI_LONG_LONG, all.data(), 3, MPI_LONG_LONG, host);
  MPI_Comm_free(&host);
  for (int peer = 0; code == MPI_SUCCESS && peer < size; ++peer) {
    const long long* const told = &all[3 * static_cast<size_t>(peer)];
    if (peer == rank || told[2] == 0 || told[2] != mine[2]) continue;
    const auto descriptor =
        static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(told[1]), 0));
    if (descriptor < 0) continue;
    peers_.push_back({static_cast<int>(told[0]), static_cast<int>(told[1]), descriptor});
  }
}

Status LocalPeers::Check() {
  const int64_t now = steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  int64_t next = next_look_nanos_.load(std::memory_order_relaxed);
  if (now < next) return OkStatus();
  if (!next_look_nanos_.compare_exchange_strong(
          next, now + std::chrono::nanoseconds(kInterval).count(), std::memory_order_relaxed))
    return OkStatus();
  for (const Peer& peer : peers_) {
    pollfd process{peer.descriptor, POLLIN, 0};
    if (poll(&process, 1, 0) == 1 && (process.revents & POLLIN) != 0)
      return IoError("rank ", peer.rank, " (process ", peer.process,
                     ") has ended without leaving the job; its own output tells why");
  }
  return OkStatus();
}

}  // namespace msrt
