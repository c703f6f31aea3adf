// Failures on demand: decides which operations of the host fail.
#pragma once

#include <atomic>
#include <mutex>
#include <random>

#include "tests/examples/accelerator/options.h"

namespace accelerator {

// May be called from any thread.
class Faults {
 public:
  explicit Faults(const Options& options) : options_(options), random_(options.seed) {}

  // Each counts an operation and returns whether it fails.
  Failure OnCompile();
  Failure OnAllocate() {
    return OnOperation("allocation", &allocations_, options_.allocate_fails_at, 0);
  }
  Failure OnCopy() { return OnOperation("copy", &copies_, options_.copy_fails_at, 0); }
  Failure OnRun() { return OnOperation("run", &runs_, options_.run_fails_at, options_.run_fails); }
  // For calls that are not counted, but fail on a dead device too.
  Failure OnCall() const;

  // Returns the delay before the next piece of work.
  double NextDelayMicros();

 private:
  Failure OnOperation(const char* what, std::atomic<int64_t>* count, int64_t fails_at,
                      double probability);
  bool Happens(double probability);

  const Options& options_;
  std::atomic<int64_t> operations_{0}, runs_{0}, copies_{0}, allocations_{0};
  std::mutex mutex_;
  std::mt19937_64 random_;
};

}  // namespace accelerator
