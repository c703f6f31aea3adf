#include "tools/msrun/rank_job.h"

#include <algorithm>

#include "core/base/platform.h"

namespace msrt {

Result<RankJob> JoinRanks(Arguments* a) {
  RankJob joined;
  MSRT_ASSIGN_OR_RETURN(joined.job, Job::FromEnvironment());
  const JobSettings& settings = joined.job->settings();
  if (settings.size == 1) return joined;
  // An epoch's evaluation or a slow disk may keep a rank for long. Under msrun launch the control
  // connection finds ranks that die or hang; mpirun finds only those that die.
  CommOptions options;
  options.stall_limit = std::chrono::hours(24);
  MSRT_ASSIGN_OR_RETURN(joined.communicator, MakeJobCommunicator(joined.job.get(), options));
  if (a->threads == 0)
    a->threads = std::max(1, AvailableCores() / std::max(1, settings.local_size));
  return joined;
}

}  // namespace msrt
