#include "core/image/jobs/thread_ranks.h"

#include <algorithm>
#include <mutex>

namespace msrt {
namespace {

class LockedSource final : public ImageSource {
 public:
  explicit LockedSource(std::shared_ptr<ImageSource> source) : source_(std::move(source)) {}
  const ImageInfo& info() const override { return source_->info(); }
  Status Read(const ImageWindow& window, const PixelBuffer& out) override {
    const std::lock_guard lock(mutex_);
    return source_->Read(window, out);
  }
  void ReadAhead(const ImageWindow& window) override {
    const std::lock_guard lock(mutex_);
    source_->ReadAhead(window);
  }
  int64_t cache_bytes() const override { return source_->cache_bytes(); }
  // Each rank allows a part of its own share of the memory.
  void AllowCache(int64_t bytes) override {
    const std::lock_guard lock(mutex_);
    allowed_ += bytes - source_->cache_bytes();
    source_->AllowCache(source_->cache_bytes() + allowed_);
  }
  int64_t block_rows() const override { return source_->block_rows(); }
  int64_t decoded_blocks() const override { return source_->decoded_blocks(); }

 private:
  const std::shared_ptr<ImageSource> source_;
  std::mutex mutex_;
  int64_t allowed_ = 0;  // by all ranks, beside what it holds anyway
};

}  // namespace

std::shared_ptr<const Environment> RankEnvironment(const Environment& all, int64_t ranks) {
  auto environment = std::make_shared<Environment>(all);
  const auto threads = static_cast<int64_t>(all.parallel->threads());
  environment->parallel = MakeThreadPool(static_cast<int>(std::max<int64_t>(1, threads / ranks)));
  return environment;
}

JobOptions RankOptionsOf(const JobOptions& options, Communicator* communicator, size_t ranks) {
  JobOptions own = options;
  own.communicator = communicator;
  const size_t limit = MemoryLimitOf(options.plan);
  const size_t left = limit - std::min(limit, options.plan.caller_bytes);
  own.plan.memory_limit_bytes = std::max<size_t>(1, left / ranks);
  own.plan.caller_bytes = 0;
  return own;
}

std::shared_ptr<ImageSource> MakeLockedSource(std::shared_ptr<ImageSource> source) {
  return std::make_shared<LockedSource>(std::move(source));
}

}  // namespace msrt
