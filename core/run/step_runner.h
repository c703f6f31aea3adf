// Runs the steps of a bound segment in order: kernels, layout changes, copies, state access. Steps
// of devices are enqueued in the session's queues; queues wait for each other as the binding says.
#pragma once

#include <vector>

#include "core/run/device_values.h"
#include "core/run/frame.h"
#include "core/run/replay.h"
#include "core/run/run_context.h"
#include "core/run/state_inputs.h"
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
  // Runs these steps.
  Status RunSteps(Frame* frame, const Binding& binding, FunctionRef<bool(const BoundStep&)> which);
  Status EndOnQueues(Frame* frame, const Binding& binding);
  Status RunStep(Frame* frame, uint32_t bound);
  Status Record(Frame* frame, const BoundStep& step);
  Status Wait(Frame* frame, const BoundStep& step);
  Status HostWait(Frame* frame, const EventId& event);
  Status Execute(Frame* frame, const BoundStep& step);
  Status FetchState(const BoundStep& step);
  Status BeginStateUpdates(Frame* frame, const BoundStep& step);
  Result<std::shared_ptr<StateCopy>> MakeStateCopy(Frame* frame, uint16_t device,
                                                   const TensorView& view);
  Status CopyState(Frame* frame, const BoundStep& step);
  Status RunKernel(Frame* frame, const BoundStep& step);
  Status Convert(Frame* frame, const BoundStep& step);
  Status Copy(Frame* frame, const BoundStep& step);
  Status EnqueueExchange(Frame* frame, const BoundStep& step);
  void HoldForms(Frame* frame, const BoundStep& step, StateInputs* states);
  TensorView ViewOf(const BoundStep& step, size_t i) const;

  RunContext& context_;
  DeviceValues& values_;
  ThreadQueue& ThreadOf(QueueId queue) { return queue == kBackgroundQueue ? background_ : thread_; }
  ThreadQueue &thread_, &background_;
  SessionScratch scratch_;
  msrt_run_args args_ = MSRT_INIT(msrt_run_args);  // of the kernel in progress; zeroed only once
  std::vector<void*> pointers_;                    // of the step in progress
  std::vector<uint64_t> replay_key_;               // of the segment in progress
  std::vector<std::shared_ptr<const void>>* recorded_forms_ = nullptr;  // not null: recording
  bool packed_copies_ = false;  // a device's kernel packed a copy of a slot's value
};

}  // namespace msrt
