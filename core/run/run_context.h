// What the parts of the executor share during a run: the session's services, the options of the
// run, and what it leaves behind (profile, failure).
#pragma once

#include <atomic>
#include <string>

#include "core/compile/compile.h"
#include "core/run/budget.h"
#include "core/run/profile.h"
#include "core/run/run_options.h"
#include "core/run/state_store.h"

namespace msrt {

// The delegate or device that failed in a run and whose work another could do; the name is empty if
// there is none.
struct RunFailure {
  std::string delegate;
  uint32_t graph = 0;  // placed again without it
  std::shared_ptr<const EntryProgram> placed;
};

struct RunContext {
  const CompiledModel& model;
  Budget& budget;
  StateStore& states;
  const std::atomic<bool>& cancelled;
  int32_t stream_priority = 0;  // of the session's streams on devices
  RunOptions options = {};
  RunFailure failure = {};
  RunProfile profile = {};
  size_t arena_lower_bound = 0;
  bool reads_caller = false;  // devices may still read stable inputs of calls (Frame::stable_from)

  // Returns an error if the run was cancelled or has passed its deadline. `step` is the next one.
  Status CheckStopped(const Program& program, const Step& step) const {
    if (cancelled.load(std::memory_order_relaxed) || options.deadline_nanos != 0)
      return CheckSlowly(program, step);
    return OkStatus();
  }

 private:
  Status CheckSlowly(const Program& program, const Step& step) const;
};

}  // namespace msrt
