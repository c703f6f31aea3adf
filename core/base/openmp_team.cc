// The OpenMP team as a ParallelFor.
//
// OpenMP's workers spin for milliseconds after each parallel region, expecting another: useful
// inside a run, a waste after it. A library cannot set the spin time, so the team has its own
// leader thread, and between runs the leader and its workers wait in a parallel region that sleeps
// on a condition variable. A run then costs two hand-overs (about 10 us), an idle team costs
// nothing; releasing the workers after each run (omp_pause_resource) costs 150 us. One team per
// runtime also means that runs of several sessions take turns on all cores instead of competing.
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "core/base/openmp_spin.h"
#include "core/base/turns.h"

namespace msrt {
namespace {

class OpenMpTeam final : public ParallelFor {
 public:
  explicit OpenMpTeam(int threads)
      : threads_(std::max(1, threads)),
        // A team that leaves cores to others keeps libgomp's default.
        spin_(threads_ > 1 && threads_ >= AvailableCores() ? std::make_unique<SpinControl>(threads_)
                                                           : nullptr),
        leader_([this] { Lead(); }) {}
  ~OpenMpTeam() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    leader_.join();
  }

  int threads() const override { return threads_; }

  Status Run(int64_t count, FunctionRef<void(int64_t)> task) override {
    if (count <= 0) return OkStatus();
    if (omp_in_parallel()) return RunTasks(count, 1, task);
    return RunOnTeam(*this, [&] {
      if (spin_ != nullptr && leads_ == this) spin_->Check();
      return RunTasks(count, static_cast<int>(std::min<int64_t>(threads_, count)), task);
    });
  }

  bool TryOnTeam(FunctionRef<void()> body, const WaitLimit& limit) override {
    if (InParallelRegion::here()) {
      RunNested(body);
      return true;
    }
    std::exception_ptr error;
    const auto guarded = [&] { error = CatchException(body); };
    Job job(guarded);
    {
      std::unique_lock lock(mutex_);
      jobs_.push_back(&job);
      if (added_++ == seen_) wake_.notify_all();
      if (!AwaitTurn(lock, job.finished, limit, [&] { return job.begun; })) {
        std::erase(jobs_, &job);
        return false;
      }
      job.finished.wait(lock, [&] { return job.done; });
    }
    if (error) std::rethrow_exception(error);
    return true;
  }

  void WakeWaiting() override {
    std::lock_guard lock(mutex_);
    for (Job* job : jobs_) job->finished.notify_one();
  }

 private:
  // One run, on the stack of the thread that waits for it.
  struct Job {
    explicit Job(FunctionRef<void()> run) : body(run) {}
    FunctionRef<void()> body;
    bool begun = false, done = false;
    std::condition_variable finished;
  };

  static std::exception_ptr CatchException(FunctionRef<void()> body) {
    try {
      body();
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  // A thread that already works for a team leads its own team meanwhile. Inside a parallel region
  // that would be a team of one, but libraries were set up for threads_, so another thread does it.
  void RunNested(FunctionRef<void()> body) const {
    const OpenMpTeamSize size(threads_);
    if (!omp_in_parallel()) return body();
    std::exception_ptr error;
    std::thread guest;
    try {
      guest = std::thread([&] {
        const InParallelRegion at_work;
        const OpenMpTeamSize own_size(threads_);
        error = CatchException(body);
      });
    } catch (const std::system_error&) {
      throw std::bad_alloc();
    }
    guest.join();
    if (error) std::rethrow_exception(error);
  }

  static Status RunTasks(int64_t count, int team, FunctionRef<void(int64_t)> task) {
    std::atomic<int64_t> next{0};
    std::atomic<bool> out_of_memory{false};
    const auto take = [&] {
      try {
        for (int64_t i; (i = next.fetch_add(1)) < count;) task(i);
      } catch (const std::bad_alloc&) {
        out_of_memory = true;
        next = count;
      }
    };
    if (team == 1) {
      take();
    } else {
#pragma omp parallel num_threads(team)
      {
        const InParallelRegion at_work;
        take();
      }
    }
    return out_of_memory.load() ? OutOfMemory(0, "a parallel task") : OkStatus();
  }

  void Lead() {
    const InParallelRegion at_work;
    leads_ = this;
    omp_set_num_threads(threads_);
    Job* last = nullptr;  // done, but its caller is not notified yet
    for (;;) {
      // Starting the region stops the workers' spinning. Only then is the last caller notified,
      // because it may take a core.
#pragma omp parallel num_threads(threads_)
      {
        if (spin_ != nullptr) spin_->SetThread(omp_get_thread_num());
        Sleep(omp_get_thread_num() == 0 ? last : nullptr);
      }
      last = nullptr;
      // Runs that are already waiting follow at once: the team stays awake and each caller is
      // notified immediately.
      while (Job* job = NextJob(last)) {
        if (spin_ != nullptr) spin_->Begin();
        job->body();
        if (spin_ != nullptr) spin_->Check();
        last = job;
      }
      if (last == nullptr && Stopping()) return;
    }
  }

  bool Stopping() {
    std::lock_guard lock(mutex_);
    return stop_;
  }

  // Returns the first waiting job, or null. If there is one, the caller of `before` is notified.
  Job* NextJob(Job* before) {
    std::lock_guard lock(mutex_);
    if (jobs_.empty()) {
      seen_ = added_;
      return nullptr;
    }
    if (before != nullptr) NotifyCaller(before);
    Job* job = jobs_.front();
    jobs_.pop_front();
    job->begun = true;
    return job;
  }

  // Sleeps until there is a job or the team stops. The leader first notifies the caller of the job
  // before. A job may be withdrawn before all threads have woken for it; all wake nevertheless.
  void Sleep(Job* before) {
    std::unique_lock lock(mutex_);
    if (before != nullptr) NotifyCaller(before);
    wake_.wait(lock, [&] { return added_ != seen_ || stop_; });
  }

  // Requires mutex_, so that the job still exists.
  static void NotifyCaller(Job* job) {
    job->done = true;
    job->finished.notify_one();
  }

  static thread_local OpenMpTeam* leads_;  // the team whose leader the calling thread is

  const int threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job*> jobs_;  // runs take turns in the order of their calls
  // The number of jobs ever added: now, and when the leader last found none waiting.
  uint64_t added_ = 0, seen_ = 0;
  bool stop_ = false;
  const std::unique_ptr<SpinControl> spin_;  // the leader's; null: not controlled
  std::thread leader_;                       // uses everything above
};

thread_local OpenMpTeam* OpenMpTeam::leads_ = nullptr;

}  // namespace

OpenMpTeamSize::OpenMpTeamSize(int threads) : previous_(omp_get_max_threads()) {
  omp_set_num_threads(threads);
}
OpenMpTeamSize::~OpenMpTeamSize() { omp_set_num_threads(previous_); }

std::unique_ptr<ParallelFor> MakeOpenMpTeam(int threads) {
  return std::make_unique<OpenMpTeam>(threads);
}

}  // namespace msrt
