// Notices that the process of a peer on this host has ended, however it ended.
#pragma once

#include <vector>

#include "core/comm/board.h"

namespace msrt {

class PeerProcesses {
 public:
  PeerProcesses() = default;
  ~PeerProcesses();
  PeerProcesses(const PeerProcesses&) = delete;
  PeerProcesses& operator=(const PeerProcesses&) = delete;

  // Call it once, when all ranks are there. A kernel that cannot watch processes is no error.
  Status Open(const Board& board);
  // An error if the process of a rank has ended before the rank closed its communicator.
  Status Check(const Board& board) const;

 private:
  std::vector<int> descriptors_;  // by rank; -1: not watched
};

}  // namespace msrt
