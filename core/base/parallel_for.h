// The one door to parallelism. Every kernel of ours splits its work through a ParallelFor that the runtime hands in; the
// default backend is the OpenMP team that oneDNN uses, so that the two never compete for cores.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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
      : object_(const_cast<void*>(static_cast<const void*>(&f))), call_([](void* o, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(o))(static_cast<Args&&>(args)...);
        }) {}
  R operator()(Args... args) const { return call_(object_, static_cast<Args&&>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

class ParallelFor {
 public:
  virtual ~ParallelFor() = default;

  // How many tasks may run at once, the caller included. At least 1.
  virtual int threads() const = 0;

  // Calls task(i) for every i in [0, count), possibly at once on several threads, and returns when all are done. A task must
  // not throw anything but std::bad_alloc, which is caught at the worker's entry and becomes kOutOfMemory.
  // Calls from several threads at a time are allowed; a call from inside a task runs its tasks one after the other.
  virtual Status Run(int64_t count, FunctionRef<void(int64_t)> task) = 0;

  // Called on the thread that starts a run and at its end, so that a backend can set its team size for libraries below.
  virtual void EnterRun() {}
  virtual void LeaveRun() {}
};

// Between EnterRun and LeaveRun, however the scope ends.
class EnteredRun {
 public:
  explicit EnteredRun(ParallelFor& parallel) : parallel_(parallel) { parallel_.EnterRun(); }
  ~EnteredRun() { parallel_.LeaveRun(); }
  EnteredRun(const EnteredRun&) = delete;
  EnteredRun& operator=(const EnteredRun&) = delete;

 private:
  ParallelFor& parallel_;
};

// The size of OpenMP teams that the calling thread starts, its libraries' included: set for a run, then what it was before. Nothing in
// builds without OpenMP.
void EnterOpenMpTeam(int threads);
void LeaveOpenMpTeam();

// Splits [0, total) into contiguous ranges of at least `grain` and calls body(begin, end) for each.
Status ParallelRanges(ParallelFor& parallel, int64_t total, int64_t grain, FunctionRef<void(int64_t, int64_t)> body);

// Runs everything on the calling thread.
std::unique_ptr<ParallelFor> MakeSerial();
// Our own workers, which sleep when there is nothing to do. The caller is one of the `threads`.
std::unique_ptr<ParallelFor> MakeThreadPool(int threads);
// The OpenMP team; MakeThreadPool in builds without OpenMP.
std::unique_ptr<ParallelFor> MakeDefaultParallel(int threads);

// Cores that this process may use.
int AvailableCores();

}  // namespace msrt
