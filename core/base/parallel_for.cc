#include "core/base/parallel_for.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace msrt {
namespace {

Status TaskOutOfMemory() { return OutOfMemory(0, "a parallel task"); }

Status RunSerially(int64_t count, FunctionRef<void(int64_t)> task) {
  try {
    for (int64_t i = 0; i < count; ++i) task(i);
  } catch (const std::bad_alloc&) {
    return TaskOutOfMemory();
  }
  return OkStatus();
}

class Serial final : public ParallelFor {
 public:
  int threads() const override { return 1; }
  Status Run(int64_t count, FunctionRef<void(int64_t)> task) override { return RunSerially(count, task); }
};

// True on a thread that is running a task, so that nested calls stay on it.
thread_local bool inside_task = false;

// Workers wait on a condition variable between jobs (no CPU at rest) and take indices from one atomic counter. One job runs at
// a time: a second caller waits its turn, so the machine is never oversubscribed by two runs of one pool.
class ThreadPool final : public ParallelFor {
 public:
  explicit ThreadPool(int threads) : threads_(std::max(1, threads)) {
    for (int i = 1; i < threads_; ++i) workers_.emplace_back([this] { Work(); });
  }
  ~ThreadPool() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& w : workers_) w.join();
  }
  int threads() const override { return threads_; }

  Status Run(int64_t count, FunctionRef<void(int64_t)> task) override {
    if (count <= 1 || threads_ == 1 || inside_task) return RunSerially(count, task);
    std::lock_guard turn(one_job_);
    Job job{task, count};
    {
      std::lock_guard lock(mutex_);
      job_ = &job;
      ++job_number_;
    }
    wake_.notify_all();
    job.Take();
    {
      std::unique_lock lock(mutex_);
      job_ = nullptr;  // nobody joins any more
      done_.wait(lock, [&] { return job.joined == 0; });
    }
    return job.out_of_memory.load() ? TaskOutOfMemory() : OkStatus();
  }

 private:
  struct Job {
    FunctionRef<void(int64_t)> task;
    int64_t count;
    std::atomic<int64_t> next{0};
    std::atomic<bool> out_of_memory{false};
    int joined = 0;  // guarded by mutex_

    void Take() {
      inside_task = true;
      try {
        for (int64_t i; (i = next.fetch_add(1)) < count;) task(i);
      } catch (const std::bad_alloc&) {
        out_of_memory = true;
        next = count;
      }
      inside_task = false;
    }
  };

  void Work() {
    uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stop_ || (job_ != nullptr && job_number_ != seen); });
      if (stop_) return;
      seen = job_number_;
      Job* job = job_;
      ++job->joined;
      lock.unlock();
      job->Take();
      lock.lock();
      if (--job->joined == 0) done_.notify_all();
    }
  }

  const int threads_;
  std::vector<std::thread> workers_;
  std::mutex one_job_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  Job* job_ = nullptr;
  uint64_t job_number_ = 0;
  bool stop_ = false;
};

}  // namespace

#if !defined(MSRT_HAVE_OPENMP)
OpenMpTeamSize::OpenMpTeamSize(int) {}
OpenMpTeamSize::~OpenMpTeamSize() = default;
#endif

Status ParallelRanges(ParallelFor& parallel, int64_t total, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  if (total <= 0) return OkStatus();
  // A few pieces a thread even out unequal cores; more would only add hand-over cost.
  const int64_t most = int64_t{parallel.threads()} * 4;
  const int64_t pieces = std::clamp<int64_t>(total / std::max<int64_t>(grain, 1), 1, parallel.threads() == 1 ? 1 : most);
  return parallel.Run(pieces, [&](int64_t i) {
    const int64_t base = total / pieces, rest = total % pieces;
    const int64_t begin = i * base + std::min(i, rest);
    body(begin, begin + base + (i < rest ? 1 : 0));
  });
}

std::unique_ptr<ParallelFor> MakeSerial() { return std::make_unique<Serial>(); }
std::unique_ptr<ParallelFor> MakeThreadPool(int threads) { return std::make_unique<ThreadPool>(threads); }

std::unique_ptr<ParallelFor> MakeDefaultParallel(int threads) {
#if defined(MSRT_HAVE_OPENMP)
  return MakeOpenMpTeam(threads);
#else
  return MakeThreadPool(threads);
#endif
}

int AvailableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace msrt
