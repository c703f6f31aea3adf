// Runs the steps of a bound segment in order: kernels, layout changes, copies, state access.
#pragma once

#include <vector>

#include "core/run/device_values.h"
#include "core/run/frame.h"
#include "core/run/run_context.h"

namespace msrt {

class StepRunner {
 public:
  StepRunner(RunContext* context, DeviceValues* values)
      : context_(*context), values_(*values), scratch_(&context->budget) {}

  // Runs the segment in progress of this frame.
  Status RunSegment(Frame* frame);

  void Trim() { scratch_.Release(); }
  size_t scratch_bytes() const { return scratch_.bytes(); }

 private:
  Status AllocateOutputs(Frame* frame, const Binding& binding);
  Status RunStep(Frame* frame, uint32_t bound);
  Status Execute(Frame* frame, const BoundStep& step);
  Status RunKernel(Frame* frame, const BoundStep& step);
  TensorView ViewOf(const BoundStep& step, size_t i) const;

  RunContext& context_;
  DeviceValues& values_;
  SessionScratch scratch_;
  std::vector<void*> pointers_;  // of the step in progress
};

}  // namespace msrt
