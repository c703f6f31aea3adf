// The interface to parallelism. Every kernel of ours splits its work through a ParallelFor that the
// runtime passes in. The default backend is the OpenMP team that oneDNN uses, so that the two never
// compete for cores.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>

#include "core/base/status.h"

namespace msrt {

// A reference to a callable; does not own it. Only for parameters.
template <typename Signature>
class FunctionRef;
template <typename R, typename... Args>
class FunctionRef<R(Args...)> {
 public:
  template <typename F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
      FunctionRef(F&& f)  // NOLINT: implicit by design
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* o, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(o))(static_cast<Args&&>(args)...);
        }) {}
  R operator()(Args... args) const { return call_(object_, static_cast<Args&&>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

// How long a caller waits for its turn.
struct WaitLimit {
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
  const std::atomic<bool>* cancelled = nullptr;  // call WakeWaiting after setting it

  bool expired() const {
    return (cancelled != nullptr && cancelled->load()) ||
           (until != std::chrono::steady_clock::time_point::max() &&
            std::chrono::steady_clock::now() >= until);
  }
};

class ParallelFor {
 public:
  virtual ~ParallelFor() = default;

  // How many tasks may run at once, the caller included. At least 1.
  virtual int threads() const = 0;

  // Calls task(i) for every i in [0, count), possibly at once on several threads, and returns when
  // all are done. A task must not throw anything but std::bad_alloc, which is caught at the
  // worker's entry and becomes kOutOfMemory. Calls from several threads at a time are allowed; a
  // call from inside a task runs its tasks one after the other.
  virtual Status Run(int64_t count, FunctionRef<void(int64_t)> task) = 0;

  // Runs `body` on the thread that this backend uses for runs, with the settings that libraries
  // need, and returns when it is done. Exceptions pass through. A thread that already works for
  // some team never waits for a turn, because the other team may be waiting for this one.
  void OnTeam(FunctionRef<void()> body) { (void)TryOnTeam(body, {}); }
  // Returns false if `limit` expired before its turn came; `body` was not called then.
  [[nodiscard]] virtual bool TryOnTeam(FunctionRef<void()> body, const WaitLimit& limit) {
    (void)limit;
    body();
    return true;
  }
  // Makes callers that wait for their turn check their limits again.
  virtual void WakeWaiting() {}
};

// OnTeam for a body that returns a value.
template <typename F>
auto RunOnTeam(ParallelFor& parallel, F&& f) {
  std::optional<decltype(f())> result;
  parallel.OnTeam([&] { result.emplace(f()); });
  return *std::move(result);
}

// Sets the size of the OpenMP teams that the calling thread starts, also inside libraries, until
// the end of the scope. Does nothing in builds without OpenMP.
class OpenMpTeamSize {
 public:
  explicit OpenMpTeamSize(int threads);
  ~OpenMpTeamSize();
  OpenMpTeamSize(const OpenMpTeamSize&) = delete;
  OpenMpTeamSize& operator=(const OpenMpTeamSize&) = delete;

 private:
  int previous_ = 0;
};

// Splits [0, total) into contiguous ranges of at least `grain` and calls body(begin, end) for each.
Status ParallelRanges(ParallelFor& parallel, int64_t total, int64_t grain,
                      FunctionRef<void(int64_t, int64_t)> body);

// Runs everything on the calling thread, libraries included. Any number of callers at once.
std::unique_ptr<ParallelFor> MakeSerial();
// Our own workers, which sleep when there is nothing to do. The caller is one of the `threads`.
std::unique_ptr<ParallelFor> MakeThreadPool(int threads);
// The OpenMP team, led by its own thread (openmp_team.cc). Only in builds with OpenMP.
std::unique_ptr<ParallelFor> MakeOpenMpTeam(int threads);
// The OpenMP team; our own threads in builds without OpenMP, and for one thread.
std::unique_ptr<ParallelFor> MakeDefaultParallel(int threads);

// Cores that this process may use.
int AvailableCores();

}  // namespace msrt
