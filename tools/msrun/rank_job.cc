#include "tools/msrun/rank_job.h"

#include <algorithm>

#include "core/base/platform.h"

namespace msrt {
namespace {

Status StartWatch(const RankLimits& limits, RankJob* joined) {
  Communicator* const world = joined->communicator.get();
  const WatchLimits of_watch = WatchLimitsOf(limits, joined->job.get());
  MSRT_RETURN_IF_ERROR(AwaitAllRanks(*world, of_watch.stall));
  MSRT_ASSIGN_OR_RETURN(auto pairs, world->SplitPairs("watch"));
  joined->watch =
      std::make_unique<RankWatch>(world->rank(), of_watch, std::move(pairs),
                                  std::vector<const Communicator*>{world}, joined->work);
  joined->watch->Start();
  return OkStatus();
}

}  // namespace

Result<RankJob> JoinRanks(Arguments* a, const RankLimits* limits) {
  RankJob joined;
  MSRT_ASSIGN_OR_RETURN(joined.job, Job::FromEnvironment());
  const JobSettings& settings = joined.job->settings();
  if (settings.size == 1) return joined;
  // Rank 0 may write for long, and a slow disk keeps a rank, so where there is a watch, a long wait
  // alone is no error. The watch finds ranks that are stuck and, where there is no control
  // connection, those that are stopped.
  CommOptions options;
  if (limits != nullptr) options.stall_limit = std::chrono::hours(24 * 7);
  MSRT_ASSIGN_OR_RETURN(joined.communicator, MakeJobCommunicator(joined.job.get(), options));
  if (a->threads == 0)
    a->threads = std::max(1, AvailableCores() / std::max(1, settings.local_size));
  if (limits != nullptr) MSRT_RETURN_IF_ERROR(StartWatch(*limits, &joined));
  return joined;
}

}  // namespace msrt
