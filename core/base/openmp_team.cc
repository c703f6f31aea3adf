// The OpenMP team as a ParallelFor.
//
// OpenMP's workers spin after each parallel region, for milliseconds, in the hope of another: right
// inside a run, a waste after it. The spin cannot be set from a library, so the team has a leader
// thread of its own, and between runs the leader and its workers sit together in a parallel region
// that sleeps on a condition variable. A run then costs two hand-overs (some 10 us), and rest costs
// nothing; giving the workers back after each run (omp_pause_resource) costs 150 us. One team for
// each runtime also means that runs of several sessions take turns on all cores instead of crowding
// each other.
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "core/base/turns.h"

namespace msrt {
namespace {

// Sleeping threads that OpenMP counts. Where it manages more threads than there are cores, libgomp
// spins a hundred times at a barrier before it sleeps, instead of three hundred thousand times (its
// manual, GOMP_SPINCOUNT). With the long spin, two threads of a team that share a core for a moment
// (another process runs, or the scheduler put them there) wait out whole time slices for each
// other: ResNet-50 on two cores then took 450 ms instead of 50; with the short one it takes 52.
class Ballast {
 public:
  explicit Ballast(int threads) : holder_([this, threads] { Hold(threads); }) {}
  ~Ballast() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    holder_.join();
  }

 private:
  void Hold(int threads) {
#pragma omp parallel num_threads(threads)
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

class OpenMpTeam final : public ParallelFor {
 public:
  explicit OpenMpTeam(int threads) : threads_(std::max(1, threads)), leader_([this] { Lead(); }) {
    try {
      if (threads_ > 1 && threads_ >= AvailableCores()) ballast_.emplace(2);
    } catch (...) {
      Stop();
      throw;
    }
  }
  ~OpenMpTeam() override { Stop(); }

  int threads() const override { return threads_; }

  Status Run(int64_t count, FunctionRef<void(int64_t)> task) override {
    if (count <= 0) return OkStatus();
    if (omp_in_parallel()) return Share(count, 1, task);
    return RunOnTeam(*this, [&] {
      return Share(count, static_cast<int>(std::min<int64_t>(threads_, count)), task);
    });
  }

  bool TryOnTeam(FunctionRef<void()> body, const WaitLimit& limit) override {
    if (InParallelRegion::here()) {
      AsGuest(body);
      return true;
    }
    std::exception_ptr error;
    const auto guarded = [&] { error = ErrorOf(body); };
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

  static std::exception_ptr ErrorOf(FunctionRef<void()> body) {
    try {
      body();
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  // A thread that is at work already leads a team of its own meanwhile. Inside a parallel region it
  // would be a team of one, where libraries below were set up for this many, so there another
  // thread does it.
  void AsGuest(FunctionRef<void()> body) const {
    const OpenMpTeamSize size(threads_);
    if (!omp_in_parallel()) return body();
    std::exception_ptr error;
    std::thread guest;
    try {
      guest = std::thread([&] {
        const InParallelRegion at_work;
        const OpenMpTeamSize own_size(threads_);
        error = ErrorOf(body);
      });
    } catch (const std::system_error&) {
      throw std::bad_alloc();
    }
    guest.join();
    if (error) std::rethrow_exception(error);
  }

  static Status Share(int64_t count, int team, FunctionRef<void(int64_t)> task) {
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

  void Stop() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    leader_.join();
  }

  void Lead() {
    const InParallelRegion at_work;
    omp_set_num_threads(threads_);
    Job* last = nullptr;  // done, but its caller not told yet
    for (;;) {
      // Starting the region is what stops the workers' spinning; only then is the last caller told,
      // who may take a core.
#pragma omp parallel num_threads(threads_)
      Sleep(omp_get_thread_num() == 0 ? last : nullptr);
      last = nullptr;
      // Runs that wait already follow each other without a rest: the team stays awake and each
      // caller is told at once.
      while (Job* job = NextJob(last)) {
        job->body();
        last = job;
      }
      if (last == nullptr && Stopping()) return;
    }
  }

  bool Stopping() {
    std::lock_guard lock(mutex_);
    return stop_;
  }

  // The first that waits, or null. `before` is told if there is one.
  Job* NextJob(Job* before) {
    std::lock_guard lock(mutex_);
    if (jobs_.empty()) {
      seen_ = added_;
      return nullptr;
    }
    if (before != nullptr) Tell(before);
    Job* job = jobs_.front();
    jobs_.pop_front();
    job->begun = true;
    return job;
  }

  // Until there is a job or the end. The leader first tells who waits for the job before. A job may
  // be withdrawn before all have woken for it; they all wake nevertheless.
  void Sleep(Job* before) {
    std::unique_lock lock(mutex_);
    if (before != nullptr) Tell(before);
    wake_.wait(lock, [&] { return added_ != seen_ || stop_; });
  }

  // With mutex_ held, so that the job is still there.
  static void Tell(Job* job) {
    job->done = true;
    job->finished.notify_one();
  }

  const int threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job*> jobs_;          // runs take turns in the order of their calls
  uint64_t added_ = 0, seen_ = 0;  // jobs ever, now and when the leader last found none waiting
  bool stop_ = false;
  std::thread leader_;  // it uses everything above
  std::optional<Ballast> ballast_;
};

}  // namespace

OpenMpTeamSize::OpenMpTeamSize(int threads) : previous_(omp_get_max_threads()) {
  omp_set_num_threads(threads);
}
OpenMpTeamSize::~OpenMpTeamSize() { omp_set_num_threads(previous_); }

std::unique_ptr<ParallelFor> MakeOpenMpTeam(int threads) {
  return std::make_unique<OpenMpTeam>(threads);
}

}  // namespace msrt
