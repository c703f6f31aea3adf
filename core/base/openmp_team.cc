// The OpenMP team as a ParallelFor.
//
// OpenMP's workers spin after each parallel region, for milliseconds, in the hope of another: right inside a run, a waste after it. The
// spin cannot be set from a library, so the team has a leader thread of its own, and between runs the leader and its workers sit
// together in a parallel region that sleeps on a condition variable. A run then costs two hand-overs (some 10 us), and rest costs nothing;
// giving the workers back after each run (omp_pause_resource) costs 150 us. One team for each runtime also means that runs of several
// sessions take turns on all cores instead of crowding each other.
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "core/base/parallel_for.h"

namespace msrt {
namespace {

// Sleeping threads that OpenMP counts. Where it manages more threads than there are cores, libgomp spins a hundred times at a barrier
// before it sleeps, instead of three hundred thousand times (its manual, GOMP_SPINCOUNT). With the long spin, two threads of a team that
// share a core for a moment (another process runs, or the scheduler put them there) wait out whole time slices for each other: ResNet-50
// on two cores then took 450 ms instead of 50; with the short one it takes 52.
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
    return RunOnTeam(*this, [&] { return Share(count, static_cast<int>(std::min<int64_t>(threads_, count)), task); });
  }

  void OnTeam(FunctionRef<void()> body) override {
    if (leads == this) return body();
    std::exception_ptr error;
    const auto guarded = [&] {
      try {
        body();
      } catch (...) {
        error = std::current_exception();
      }
    };
    FunctionRef<void()> job = guarded;
    std::lock_guard turn(one_job_);
    {
      std::unique_lock lock(mutex_);
      job_ = &job;
      wake_.notify_all();
      finished_.wait(lock, [&] { return done_ && job_ == nullptr; });
    }
    if (error) std::rethrow_exception(error);
  }

 private:
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
      take();
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
    leads = this;
    omp_set_num_threads(threads_);
    for (;;) {
      // Starting the region is what stops the workers' spinning; only then is the caller told, who may take a core.
#pragma omp parallel num_threads(threads_)
      Sleep(omp_get_thread_num() == 0);
      FunctionRef<void()>* job;
      {
        std::lock_guard lock(mutex_);
        if (stop_) return;
        job = std::exchange(job_, nullptr);
        done_ = false;
      }
      (*job)();
    }
  }

  // Until there is a job or the end. The leader first reports the job before.
  void Sleep(bool leader) {
    std::unique_lock lock(mutex_);
    if (leader) {
      done_ = true;
      finished_.notify_one();
    }
    wake_.wait(lock, [&] { return job_ != nullptr || stop_; });
  }

  static thread_local const OpenMpTeam* leads;  // the team whose leader this thread is

  const int threads_;
  std::mutex one_job_;  // held for a whole run: runs take turns
  std::mutex mutex_;
  std::condition_variable wake_, finished_;
  FunctionRef<void()>* job_ = nullptr;
  bool done_ = false, stop_ = false;
  std::thread leader_;  // it uses everything above
  std::optional<Ballast> ballast_;
};

thread_local const OpenMpTeam* OpenMpTeam::leads = nullptr;

}  // namespace

OpenMpTeamSize::OpenMpTeamSize(int threads) : previous_(omp_get_max_threads()) { omp_set_num_threads(threads); }
OpenMpTeamSize::~OpenMpTeamSize() { omp_set_num_threads(previous_); }

std::unique_ptr<ParallelFor> MakeOpenMpTeam(int threads) { return std::make_unique<OpenMpTeam>(threads); }

}  // namespace msrt
