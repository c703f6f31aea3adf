// Options of one run: deadline, profiling, limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/base/clock.h"
#include "core/base/parallel_for.h"

namespace msrt {

struct RunOptions {
  int64_t deadline_nanos = 0;  // on the environment's clock; 0: none
  bool profile = false;
  // Limits on graphs that call each other. max_depth: activations of one graph at once (tail calls
  // do not count). max_calls: calls and iterations in total; 0: no limit. The memory of frames
  // counts against the session's cap.
  size_t max_depth = 100'000;
  uint64_t max_calls = 0;
  // Called after each step of a graph, by the thread that runs it, with the part of the estimated
  // time of the graph's bound steps that is over. It outlives the run. May be null.
  const std::function<void(double fraction)>* progress = nullptr;
};

// Returns how long a run with these options waits for other runs.
inline WaitLimit LimitOf(const RunOptions& options, Clock* clock,
                         const std::atomic<bool>* cancelled) {
  WaitLimit limit{.cancelled = cancelled};
  if (options.deadline_nanos == 0) return limit;
  constexpr int64_t kForever = INT64_MAX / 2;
  const int64_t left = options.deadline_nanos - clock->NowNanos();
  if (left < kForever)
    limit.until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(left);
  return limit;
}

}  // namespace msrt
