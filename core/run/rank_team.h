// Keeps two ranks of one process off the same threads. A run holds the threads of its runtime until
// it ends, also while it waits for another rank; if that rank needed the same threads, both would
// wait for ever.
#pragma once

#include <memory>

#include "core/base/parallel_for.h"
#include "core/base/status.h"

namespace msrt {

class Communicator;

// A rank's use of a thread team, until it is destroyed. Sessions of one rank share a team.
class RankTeam {
 public:
  RankTeam() = default;
  // kInvalidArgument if another rank of a communicator of this process uses the team.
  static Result<RankTeam> Join(std::shared_ptr<const ParallelFor> team, const Communicator& comm);

 private:
  std::shared_ptr<const void> use_;
};

}  // namespace msrt
