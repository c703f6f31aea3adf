// Runs the steps of a bound segment in order: kernels, layout changes, copies, state access. Steps
// of devices are enqueued in the session's queues; queues wait for each other as the binding says.
#pragma once

#include <vector>

#include "core/run/device_values.h"
#include "core/run/frame.h"
#include "core/run/replay.h"
#include "core/run/run_context.h"
#include "core/run/thread_queue.h"

namespace msrt {

class StepRunner {
 public:
  StepRunner(RunContext* context, DeviceValues* values, ThreadQueue* thread,
             ThreadQueue* background)
      : context_(*context),
        values_(*values),
        thread_(*thread),
        background_(*background),
        scratch_(&context->budget) {}

  // Runs the segment in progress of this frame. Its results on the host are there afterwards; work
  // of devices may still be in progress.
  Status RunSegment(Frame* frame);

  void Trim() { scratch_.Release(); }
  size_t scratch_bytes() const { return scratch_.bytes(); }

 private:
  Status Prepare(Frame* frame, const Binding& binding);
  Status AllocateOutputs(Frame* frame, const Binding& binding);
  Status JoinQueues(Frame* frame);
  Status RunOnQueues(Frame* frame, const Binding& binding);
  Status RunCaptured(Frame* frame, const Binding& binding);
  Status Capture(Frame* frame, const Binding& binding, Replay* replay);
  // Runs the steps of these queues.
  Status RunSteps(Frame* frame, const Binding& binding, FunctionRef<bool(QueueId)> which);
  Status EndOnQueues(Frame* frame, const Binding& binding);
  Status RunStep(Frame* frame, uint32_t bound);
  Status Record(Frame* frame, const BoundStep& step);
  Status Wait(Frame* frame, const BoundStep& step);
  Status HostWait(Frame* frame, const EventId& event);
  Status Execute(Frame* frame, const BoundStep& step);
  Status BeginStateUpdates(const BoundStep& step);
  Status CopyState(Frame* frame, const BoundStep& step);
  Status RunKernel(Frame* frame, const BoundStep& step);
  Status Convert(Frame* frame, const BoundStep& step);
  Status Copy(Frame* frame, const BoundStep& step);
  Status EnqueueExchange(Frame* frame, const BoundStep& step);
  TensorView ViewOf(const BoundStep& step, size_t i) const;

  RunContext& context_;
  DeviceValues& values_;
  ThreadQueue& ThreadOf(QueueId queue) { return queue == kBackgroundQueue ? background_ : thread_; }
  ThreadQueue &thread_, &background_;
  SessionScratch scratch_;
  msrt_run_args args_ = MSRT_INIT(msrt_run_args);  // of the kernel in progress; zeroed only once
  std::vector<void*> pointers_;                    // of the step in progress
  std::vector<const void*> addresses_;  // of the segment in progress, if it may be captured
};

}  // namespace msrt
