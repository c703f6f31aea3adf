#include "core/api/callbacks.h"

#include <atomic>

namespace msrt {
namespace {

// True on a thread that is running a task, so that nested calls stay on it.
thread_local bool inside_task = false;

// Hash of an index (splitmix64). Sums of hashes distinguish sets of indices: the same index twice
// does not look like two others.
uint64_t IndexHash(int64_t index) {
  uint64_t z = (static_cast<uint64_t>(index) + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// One parallel loop that the application runs. Call is the task that it gets, which must not throw
// into its C code.
struct Job {
  FunctionRef<void(int64_t)> task;
  int64_t count;
  std::atomic<int64_t> calls{0};
  std::atomic<uint64_t> hash_sum{0};  // of the indices of all calls
  std::atomic<bool> out_of_memory{false}, failed{false}, bad_index{false};

  bool CalledEachIndexOnce() const {
    uint64_t expected = 0;
    for (int64_t i = 0; i < count; ++i) expected += IndexHash(i);
    return calls == count && hash_sum == expected;
  }

  static void Call(void* context, int64_t index) noexcept {
    Job& job = *static_cast<Job*>(context);
    if (index < 0 || index >= job.count) {
      job.bad_index = true;
      return;
    }
    job.calls.fetch_add(1, std::memory_order_relaxed);
    job.hash_sum.fetch_add(IndexHash(index), std::memory_order_relaxed);
    const bool outer = inside_task;
    inside_task = true;
    try {
      job.task(index);
    } catch (const std::bad_alloc&) {
      job.out_of_memory = true;
    } catch (...) {
      job.failed = true;
    }
    inside_task = outer;
  }
};

class CallbackParallel final : public ParallelFor {
 public:
  CallbackParallel(const msrt_runtime_config& config, int threads)
      : config_(config), threads_(threads), serial_(MakeSerial()) {}

  int threads() const override { return threads_; }

  Status Run(int64_t count, FunctionRef<void(int64_t)> task) override {
    if (count <= 1 || threads_ == 1 || inside_task) return serial_->Run(count, task);
    Job job{task, count};
    config_.parallel_for(config_.parallel_user, count, &Job::Call, &job);
    if (job.out_of_memory) return OutOfMemory(0, "a parallel task");
    if (job.failed) return InternalError("a parallel task threw an exception; please report this");
    if (job.bad_index || !job.CalledEachIndexOnce()) {
      return InvalidArgument(
          "the application's parallel_for must call the task once for each index in [0, ", count,
          "); it made ", job.calls.load(), " such calls",
          job.bad_index        ? " and others with wrong indices"
          : job.calls == count ? ", some for the same index"
                               : "");
    }
    return OkStatus();
  }

  // Libraries with OpenMP of their own cannot use the application's threads; they use as many
  // threads of theirs.
  bool TryOnTeam(FunctionRef<void()> body, const WaitLimit&) override {
    const OpenMpTeamSize size(threads_);
    body();
    return true;
  }

 private:
  const msrt_runtime_config config_;
  const int threads_;
  const std::unique_ptr<ParallelFor> serial_;
};

}  // namespace

std::unique_ptr<ParallelFor> MakeCallbackParallel(const msrt_runtime_config& config, int threads) {
  return std::make_unique<CallbackParallel>(config, threads);
}

Log MakeCallbackLog(const msrt_runtime_config& config) {
  if (config.log == nullptr) return Log();
  const auto sink = [log = config.log, user = config.log_user](LogLevel level,
                                                               const std::string& line) {
    log(user, static_cast<int32_t>(level), line.c_str());
  };
  return Log(sink, static_cast<LogLevel>(config.log_level));
}

}  // namespace msrt
