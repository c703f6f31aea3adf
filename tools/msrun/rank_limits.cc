#include "tools/msrun/rank_limits.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace msrt {

void AddRankLimits(CLI::App* app, const char* step, RankLimits* limits) {
  constexpr double kMinSilence = 0.05, kMaxSilence = 86400;
  app->add_option("--timeout", limits->silence_seconds,
                  "under mpirun: seconds without a sign of life after which a rank has failed; "
                  "under 'msrun launch' its own --timeout decides")
      ->check(CLI::Range(kMinSilence, kMaxSilence))
      ->capture_default_str();
  app->add_option("--stall-timeout", limits->stall_seconds,
                  StrCat("seconds after which a rank has failed that does no work and waits for no "
                         "other; it must be longer than ",
                         step, "; 'msrun launch' has the same option"))
      ->check(CLI::Range(kMinStallSeconds, kMaxStallSeconds))
      ->envname("MSRT_STALL_TIMEOUT")
      ->capture_default_str();
}

WatchLimits WatchLimitsOf(const RankLimits& limits, Job* job) {
  const auto millis = [](double seconds) {
    return std::chrono::milliseconds(static_cast<int64_t>(std::max(seconds * 1e3, 1.0)));
  };
  WatchLimits of_watch{.stall = millis(limits.stall_seconds)};
  if (job->control() == nullptr) of_watch.silence = millis(limits.silence_seconds);
  return of_watch;
}

}  // namespace msrt
