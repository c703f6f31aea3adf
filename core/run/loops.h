// Loop, Scan and While: the frame of the caller holds the loop's state (LoopState), and each
// iteration is a call of the body.
#pragma once

#include <vector>

#include "core/run/calls.h"
#include "core/run/device_values.h"

namespace msrt {

class Loops {
 public:
  Loops(RunContext* context, Calls* calls, DeviceValues* values)
      : context_(*context), calls_(*calls), values_(*values) {}

  // Begins the loop. True: it is done; false: its body or condition has to run first.
  Result<bool> Begin(Frame* frame, const Step& step);
  // Takes the results of a call: the condition, or the values for the next iteration.
  Status TakeResults(Frame* frame, const Step& step);
  // Begins the next iteration. The answer is that of Begin.
  Result<bool> Next(Frame* frame, const Step& step);

 private:
  Status SetTrips(Frame* frame, const Step& step);
  // Calls the body, or the condition of a While.
  Status CallBody(Frame* frame, const Step& step);
  Status AddArguments(Frame* frame, const Step& step, uint32_t graph);
  Result<RunValue> SliceOf(Frame* frame, const Step& step, size_t i);
  Status Finish(Frame* frame, const Step& step);
  Status FinishScanned(Frame* frame, const Step& step, size_t i, ResultCell* cell);

  RunContext& context_;
  Calls& calls_;
  DeviceValues& values_;
  std::vector<RunValue> arguments_;  // of the call that is being made
  std::vector<ResultCell*> targets_;
};

}  // namespace msrt
