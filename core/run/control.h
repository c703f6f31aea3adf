// Control flow, which runs between the segments of a frame: branches, calls, functions. Loops are
// in loops.h, lists in lists.h.
#pragma once

#include <span>
#include <vector>

#include "core/run/calls.h"
#include "core/run/loops.h"

namespace msrt {

class ControlFlow {
 public:
  ControlFlow(RunContext* context, Calls* calls, DeviceValues* values)
      : context_(*context), calls_(*calls), loops_(context, calls, values) {}

  // Begins the control or list step at which the frame's segment ended. True: the step is done;
  // false: another frame has to run first.
  Result<bool> Begin(Frame* frame);
  // Goes on after a callee has ended. The answer is that of Begin.
  Result<bool> Resume(Frame* frame);

 private:
  Result<bool> BeginKind(Frame* frame, const Step& step);
  Result<uint32_t> BranchOf(Frame* frame, const Step& step) const;
  Result<bool> Call(Frame* frame, const Step& step, uint32_t graph,
                    std::span<const RunValue> captured);
  Status MakePartial(Frame* frame, const Step& step);

  RunContext& context_;
  Calls& calls_;
  Loops loops_;
  std::vector<RunValue> arguments_;  // of the call that is being made
  std::vector<ResultCell*> targets_;
};

}  // namespace msrt
