// Counts the tasks that a rank's kernels have done, as a sign that the rank works.
#pragma once

#include <atomic>
#include <memory>

#include "core/base/parallel_for.h"

namespace msrt {

// Passes everything on to another backend.
class CountedParallel final : public ParallelFor {
 public:
  CountedParallel(std::shared_ptr<ParallelFor> inner, std::shared_ptr<std::atomic<uint64_t>> work)
      : inner_(std::move(inner)), work_(std::move(work)) {}

  int threads() const override { return inner_->threads(); }
  Status Run(int64_t count, FunctionRef<void(int64_t)> task) override {
    return inner_->Run(count, [&](int64_t i) {
      task(i);
      work_->fetch_add(1, std::memory_order_relaxed);
    });
  }
  bool TryOnTeam(FunctionRef<void()> body, const WaitLimit& limit) override {
    return inner_->TryOnTeam(body, limit);
  }
  void WakeWaiting() override { inner_->WakeWaiting(); }

 private:
  const std::shared_ptr<ParallelFor> inner_;
  const std::shared_ptr<std::atomic<uint64_t>> work_;
};

}  // namespace msrt
