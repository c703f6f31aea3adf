#include "core/base/clock.h"

#include <chrono>

namespace msrt {

int64_t MonotonicNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Clock* DefaultClock() {
  class Steady final : public Clock {
    int64_t NowNanos() override { return MonotonicNanos(); }
  };
  static Steady clock;
  return &clock;
}

}  // namespace msrt
