#include "core/base/openmp_spin.h"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "core/base/clock.h"

namespace msrt {
namespace {

constexpr int64_t kMillisecond = 1'000'000;
// A time slice of another process is 3 to 4 ms: a thread that loses one in this time has less than
// its share of it, one that is interrupted for a moment does not.
constexpr int64_t kObservedNanos = 10 * kMillisecond;
constexpr double kOwnCoreShare = 0.8;
// Observing a run costs about this much for each thread; it may take a hundredth of the time.
constexpr int64_t kCostNanos = 600, kCostShare = 100;
constexpr int64_t kMinPauseNanos = 100 * kMillisecond, kMaxPauseNanos = 2000 * kMillisecond;

}  // namespace

// Sleeping threads whose only purpose is that libgomp counts them.
class SpinControl::IdleThreads {
 public:
  IdleThreads() : holder_([this] { Hold(); }) {}
  ~IdleThreads() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    holder_.join();
  }

 private:
  void Hold() {
#pragma omp parallel num_threads(2)
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stop_; });
    }
  }
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread holder_;
};

SpinControl::SpinControl(int threads)
    : clocks_(static_cast<size_t>(threads)),
      has_clock_(static_cast<size_t>(threads)),
      begin_times_(static_cast<size_t>(threads)),
      now_times_(static_cast<size_t>(threads)),
      busy_times_(static_cast<size_t>(threads)),
      pause_nanos_(kMinPauseNanos) {}

SpinControl::~SpinControl() = default;

void SpinControl::SetThread(int number) {
  const auto n = static_cast<size_t>(number);
  has_clock_[n] = pthread_getcpuclockid(pthread_self(), &clocks_[n]) == 0;
}

int64_t SpinControl::Now() const { return MonotonicNanos(); }

std::optional<int64_t> SpinControl::ThreadTime(size_t number) const {
  timespec time{};
  if (clock_gettime(clocks_[number], &time) != 0) return std::nullopt;
  return time.tv_sec * 1000 * kMillisecond + time.tv_nsec;
}

void SpinControl::ReadThreadTimes(std::vector<int64_t>* times) {
  for (size_t i = 0; i < clocks_.size(); ++i) {
    const std::optional<int64_t> time = has_clock_[i] ? ThreadTime(i) : std::nullopt;
    has_clock_[i] = time.has_value();
    (*times)[i] = time.value_or(0);
  }
}

double SpinControl::LeastShare() const {
  double least = 1;
  for (size_t i = 0; i < clocks_.size(); ++i) {
    if (!has_clock_[i]) continue;
    least =
        std::min(least, static_cast<double>(busy_times_[i]) / static_cast<double>(observed_nanos_));
  }
  return least;
}

void SpinControl::Begin() {
  begin_nanos_ = Now();
  if (idle_ != nullptr && begin_nanos_ >= spin_again_nanos_) idle_.reset();
  observes_ = idle_ == nullptr && begin_nanos_ >= observe_again_nanos_;
  if (observes_) ReadThreadTimes(&begin_times_);
}

void SpinControl::Check() {
  if (!observes_) return;
  const int64_t now = Now();
  const int64_t cost = kCostShare * kCostNanos * static_cast<int64_t>(clocks_.size());
  if (now < observe_again_nanos_) return;
  observe_again_nanos_ = now + cost;
  ReadThreadTimes(&now_times_);
  for (size_t i = 0; i < clocks_.size(); ++i) busy_times_[i] += now_times_[i] - begin_times_[i];
  observed_nanos_ += now - begin_nanos_;
  begin_times_ = now_times_;
  begin_nanos_ = now;
  if (observed_nanos_ < kObservedNanos) return;
  if (LeastShare() < kOwnCoreShare) {
    try {
      idle_ = std::make_unique<IdleThreads>();
      observes_ = false;
    } catch (const std::exception&) {  // no thread to be had: the team goes on spinning
    }
    spin_again_nanos_ = now + pause_nanos_;
    pause_nanos_ = std::min(2 * pause_nanos_, kMaxPauseNanos);
  } else {
    pause_nanos_ = kMinPauseNanos;
  }
  observed_nanos_ = 0;
  std::fill(busy_times_.begin(), busy_times_.end(), 0);
}

}  // namespace msrt
