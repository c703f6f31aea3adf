#include "core/run/run_context.h"

namespace msrt {

Status RunContext::CheckSlowly(const Program& program, const Step& step) const {
  if (cancelled.load(std::memory_order_relaxed))
    return MakeStatus(Code::kCancelled, "the run was cancelled");
  if (model.environment->clock->NowNanos() < options.deadline_nanos) return OkStatus();
  return MakeStatus(Code::kDeadlineExceeded, "the run passed its deadline before ",
                    Describe(program, step));
}

}  // namespace msrt
