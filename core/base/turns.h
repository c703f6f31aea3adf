// Shared by the backends of ParallelFor: how callers wait for their turn, and which threads must
// not wait.
#pragma once

#include <condition_variable>
#include <mutex>

#include "core/base/parallel_for.h"

namespace msrt {

// Marks the calling thread as working for a team until the end of the scope. Such a thread never
// waits for a turn.
class InParallelRegion {
 public:
  InParallelRegion() { ++depth_; }
  ~InParallelRegion() { --depth_; }
  InParallelRegion(const InParallelRegion&) = delete;
  InParallelRegion& operator=(const InParallelRegion&) = delete;
  static bool here() { return depth_ > 0; }

 private:
  static thread_local int depth_;
};

// Waits on `turn` until `is_my_turn()` holds or the limit expires, and returns whether it holds.
template <typename Condition>
bool AwaitTurn(std::unique_lock<std::mutex>& lock, std::condition_variable& turn,
               const WaitLimit& limit, const Condition& is_my_turn) {
  while (!is_my_turn()) {
    if (limit.expired()) return false;
    if (limit.until == std::chrono::steady_clock::time_point::max()) turn.wait(lock);
    else turn.wait_until(lock, limit.until);
  }
  return true;
}

}  // namespace msrt
