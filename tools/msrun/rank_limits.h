// When a rank of 'msrun image' or 'msrun train' is given up.
#pragma once

#include "core/comm/job/job.h"
#include "core/comm/job/rank_watch.h"

namespace CLI {
class App;
}

namespace msrt {

struct RankLimits {
  double silence_seconds = 10;  // without a sign of life; under mpirun
  double stall_seconds = 600;   // without any work, while it waits for no other rank
};

// Adds --timeout and --stall-timeout. `step` names the longest work between two signs of work.
void AddRankLimits(CLI::App* app, const char* step, RankLimits* limits);

// The limits of the watch of a job. Where there is a control connection, it finds silent ranks.
WatchLimits WatchLimitsOf(const RankLimits& limits, Job* job);

}  // namespace msrt
