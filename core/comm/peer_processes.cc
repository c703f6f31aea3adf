#include "core/comm/peer_processes.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

namespace msrt {
namespace {

// Reads `closed` after the process was found to have ended, so a rank that leaves is not an error.
Status EndedError(const Board& board, int rank) {
  if (board.at(rank).closed.load() != 0) return OkStatus();
  return MakeStatus(Code::kCancelled, "group '", board.group(), "': rank ", rank, " (process ",
                    board.at(rank).process.load(),
                    ") has ended without closing its communicator; its own output tells why");
}

}  // namespace

PeerProcesses::~PeerProcesses() {
  for (const int descriptor : descriptors_)
    if (descriptor >= 0) close(descriptor);
}

Status PeerProcesses::Open(const Board& board) {
  for (int rank = 0; rank < board.size(); ++rank) {
    int descriptor = -1;
    if (rank != board.rank()) {
      descriptor = static_cast<int>(syscall(SYS_pidfd_open, board.at(rank).process.load(), 0));
      if (descriptor < 0 && errno == ESRCH) MSRT_RETURN_IF_ERROR(EndedError(board, rank));
    }
    descriptors_.push_back(descriptor);
  }
  return OkStatus();
}

Status PeerProcesses::Check(const Board& board) const {
  for (size_t rank = 0; rank < descriptors_.size(); ++rank) {
    if (descriptors_[rank] < 0) continue;
    pollfd process{descriptors_[rank], POLLIN, 0};
    if (poll(&process, 1, 0) == 1 && (process.revents & POLLIN) != 0)
      MSRT_RETURN_IF_ERROR(EndedError(board, static_cast<int>(rank)));
  }
  return OkStatus();
}

}  // namespace msrt
