// What backends of ParallelFor share: how callers wait for their turn, and who must not.
#pragma once

#include <condition_variable>
#include <mutex>

#include "core/base/parallel_for.h"

namespace msrt {

// Says, until the end of the scope, that the calling thread is at work for a team.
class AtWork {
 public:
  AtWork() { ++depth_; }
  ~AtWork() { --depth_; }
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;
  static bool here() { return depth_ > 0; }

 private:
  static thread_local int depth_;
};

// Waits on `turn` until `come()` holds or patience is over, and returns whether it holds.
template <typename Come>
bool AwaitTurn(std::unique_lock<std::mutex>& lock, std::condition_variable& turn, const Patience& patience, const Come& come) {
  while (!come()) {
    if (patience.over()) return false;
    if (patience.until == std::chrono::steady_clock::time_point::max()) turn.wait(lock);
    else turn.wait_until(lock, patience.until);
  }
  return true;
}

}  // namespace msrt
