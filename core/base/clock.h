// Monotonic time, as an interface so that tests can move it.
#pragma once

#include <cstdint>

namespace msrt {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t NowNanos() = 0;
};

Clock* DefaultClock();

// The default clock's time; for measuring, not for deadlines.
int64_t MonotonicNanos();

// Milliseconds since construction.
class StopWatch {
 public:
  StopWatch() : start_(MonotonicNanos()) {}
  double Millis() const { return static_cast<double>(MonotonicNanos() - start_) * 1e-6; }

 private:
  int64_t start_;
};

// Adds the milliseconds of its lifetime to `*millis`.
class ScopedTimer {
 public:
  explicit ScopedTimer(double* millis) : millis_(millis) {}
  ~ScopedTimer() { *millis_ += watch_.Millis(); }
  ScopedTimer(const ScopedTimer&) = delete;
  ScopedTimer& operator=(const ScopedTimer&) = delete;

 private:
  double* millis_;
  StopWatch watch_;
};

}  // namespace msrt
