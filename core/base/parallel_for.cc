#include "core/base/parallel_for.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/turns.h"

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
  bool TryOnTeam(FunctionRef<void()> body, const WaitLimit&) override {
    const OpenMpTeamSize size(1);
    body();
    return true;
  }
  Status Run(int64_t count, FunctionRef<void(int64_t)> task) override {
    return RunSerially(count, task);
  }
};

// True on a thread that is running a task, so that nested calls stay on it.
thread_local bool inside_task = false;

// A pool has as many slots as threads, and no thread works without one: a run holds a slot from
// beginning to end, and a parallel loop takes the free slots for its workers. So a single run uses
// all cores, many concurrent runs use one core each, and there are never more threads at work than
// the runtime allows. Waiting threads sleep, so an idle pool uses no CPU.
class ThreadPool final : public ParallelFor {
 public:
  explicit ThreadPool(int threads) : threads_(std::max(1, threads)), free_slots_(threads_) {
    for (int i = 1; i < threads_; ++i) workers_.emplace_back([this] { Work(); });
  }
  ~ThreadPool() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    job_added_.notify_all();
    for (std::thread& w : workers_) w.join();
  }
  int threads() const override { return threads_; }

  bool TryOnTeam(FunctionRef<void()> body, const WaitLimit& limit) override {
    std::optional<Slot> slot;
    if (!InParallelRegion::here()) {
      if (!TakeSlot(limit)) return false;
      slot.emplace(this);
    }
    const OpenMpTeamSize size(1);  // libraries below start no threads beside these
    body();
    return true;
  }

  void WakeWaiting() override {
    std::lock_guard lock(mutex_);
    slot_freed_.notify_all();
  }

  Status Run(int64_t count, FunctionRef<void(int64_t)> task) override {
    if (count <= 1 || threads_ == 1 || inside_task) return RunSerially(count, task);
    Status status;
    OnTeam([&] { status = RunWithHelpers(count, task); });
    return status;
  }

 private:
  struct Job {
    FunctionRef<void(int64_t)> task;
    int64_t count;
    int wanted;      // helpers that may still join; guarded by mutex_
    int joined = 0;  // guarded by mutex_
    std::atomic<int64_t> next{0};
    std::atomic<bool> out_of_memory{false};

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

  bool TakeSlot(const WaitLimit& limit) {
    std::unique_lock lock(mutex_);
    if (!AwaitTurn(lock, slot_freed_, limit, [&] { return free_slots_ > 0; })) return false;
    --free_slots_;
    return true;
  }

  // Owns a taken slot: permission for the calling thread to work, until the end of the scope.
  class Slot {
   public:
    explicit Slot(ThreadPool* pool) : pool_(pool) {}
    ~Slot() {
      std::lock_guard lock(pool_->mutex_);
      ++pool_->free_slots_;
      pool_->slot_freed_.notify_one();
    }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

   private:
    ThreadPool* pool_;
    const InParallelRegion at_work_;
  };

  Status RunWithHelpers(int64_t count, FunctionRef<void(int64_t)> task) {
    std::unique_lock lock(mutex_);
    const int helpers = static_cast<int>(std::min<int64_t>(free_slots_, count - 1));
    if (helpers == 0) {
      lock.unlock();
      return RunSerially(count, task);
    }
    free_slots_ -= helpers;
    Job job{task, count, helpers};
    jobs_.push_back(&job);
    lock.unlock();
    job_added_.notify_all();
    job.Take();
    lock.lock();
    std::erase(jobs_, &job);  // no more helpers join
    job_left_.wait(lock, [&] { return job.joined == 0; });
    free_slots_ += helpers;
    slot_freed_.notify_all();
    return job.out_of_memory.load() ? TaskOutOfMemory() : OkStatus();
  }

  Job* FindJob() const {
    for (Job* job : jobs_) {
      if (job->wanted > 0) return job;
    }
    return nullptr;
  }

  void Work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      job_added_.wait(lock, [&] { return stop_ || FindJob() != nullptr; });
      if (stop_) return;
      Job* job = FindJob();
      --job->wanted;
      ++job->joined;
      lock.unlock();
      {
        const InParallelRegion at_work;
        job->Take();
      }
      lock.lock();
      if (--job->joined == 0) job_left_.notify_all();
    }
  }

  const int threads_;
  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable job_added_, job_left_, slot_freed_;
  std::vector<Job*> jobs_;
  int free_slots_;
  bool stop_ = false;
};

}  // namespace

thread_local int InParallelRegion::depth_ = 0;

#if !defined(MSRT_HAVE_OPENMP)
OpenMpTeamSize::OpenMpTeamSize(int) {}
OpenMpTeamSize::~OpenMpTeamSize() = default;
#endif

Status ParallelRanges(ParallelFor& parallel, int64_t total, int64_t grain,
                      FunctionRef<void(int64_t, int64_t)> body) {
  if (total <= 0) return OkStatus();
  // A few pieces per thread balance unequal cores; more would only add overhead.
  const int64_t max_pieces = int64_t{parallel.threads()} * 4;
  const int64_t pieces = std::clamp<int64_t>(total / std::max<int64_t>(grain, 1), 1,
                                             parallel.threads() == 1 ? 1 : max_pieces);
  return parallel.Run(pieces, [&](int64_t i) {
    const int64_t base = total / pieces, rest = total % pieces;
    const int64_t begin = i * base + std::min(i, rest);
    body(begin, begin + base + (i < rest ? 1 : 0));
  });
}

std::unique_ptr<ParallelFor> MakeSerial() { return std::make_unique<Serial>(); }
std::unique_ptr<ParallelFor> MakeThreadPool(int threads) {
  return std::make_unique<ThreadPool>(threads);
}

std::unique_ptr<ParallelFor> MakeDefaultParallel(int threads) {
#if defined(MSRT_HAVE_OPENMP)
  if (threads > 1) return MakeOpenMpTeam(threads);  // for one thread the caller suffices
#endif
  return MakeThreadPool(threads);
}

int AvailableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace msrt
