// Failures on demand: which of the operations that the host asks for shall fail.
#pragma once

#include <atomic>
#include <mutex>
#include <random>

#include "tests/examples/accelerator/options.h"

namespace accelerator {

// Any thread.
class Faults {
 public:
  explicit Faults(const Options& options) : options_(options), random_(options.seed) {}

  // Each counts an operation and says whether it fails.
  Failure OnCompile();
  Failure OnAllocate() {
    return OnOperation("allocation", &allocations_, options_.allocate_fails_at, 0);
  }
  Failure OnCopy() { return OnOperation("copy", &copies_, options_.copy_fails_at, 0); }
  Failure OnRun() { return OnOperation("run", &runs_, options_.run_fails_at, options_.run_fails); }
  // For what is not counted, but does not work on a dead device either.
  Failure OnCall() const;

  // What the next piece of work waits before it begins.
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
