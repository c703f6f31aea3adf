// Joins the ranks of a run or of training.
#pragma once

#include <memory>

#include "core/comm/job/rank_watch.h"
#include "core/comm/job_communicator.h"
#include "tools/msrun/arguments.h"
#include "tools/msrun/rank_limits.h"

namespace msrt {

struct RankJob {
  std::unique_ptr<Job> job;
  std::unique_ptr<Communicator> communicator;  // null: one rank alone
  // Grows while this rank works: the sign for the watch.
  std::shared_ptr<std::atomic<uint64_t>> work = std::make_shared<std::atomic<uint64_t>>(0);
  std::unique_ptr<RankWatch> watch;  // runs; null: one rank alone, or not asked for

  // A collective, when this rank needs the others no more.
  void StopWatch() const {
    if (watch) watch->Stop();
  }

  int rank() const { return communicator == nullptr ? 0 : communicator->rank(); }
};

// Joins the ranks of msrun launch, of mpirun or of variables set by hand, if this process is one of
// several, and adapts the options: the ranks of a host share its cores. With `limits` they watch
// each other; otherwise an operation that waits for too long fails.
Result<RankJob> JoinRanks(Arguments* arguments, const RankLimits* limits = nullptr);

}  // namespace msrt
