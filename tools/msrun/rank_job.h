// Joins the ranks of a run or of training.
#pragma once

#include <memory>

#include "core/comm/job_communicator.h"
#include "tools/msrun/arguments.h"

namespace msrt {

struct RankJob {
  std::unique_ptr<Job> job;
  std::unique_ptr<Communicator> communicator;  // null: one rank alone

  int rank() const { return communicator == nullptr ? 0 : communicator->rank(); }
};

// Joins the ranks of msrun launch, of mpirun or of variables set by hand, if this process is one of
// several, and adapts the options: the ranks of a host share its cores.
Result<RankJob> JoinRanks(Arguments* arguments);

}  // namespace msrt
