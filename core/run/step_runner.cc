#include "core/run/step_runner.h"

#include "core/run/convert.h"
#include "core/run/resolve.h"
#include "core/run/results.h"

namespace msrt {

Status StepRunner::RunSegment(Frame* frame) {
  BoundSegment& segment = frame->segment();
  const Binding& binding = *segment.binding;
  if (segment.arena.data() == nullptr || segment.arena.bytes() < binding.arena_bytes) {
    MSRT_RETURN_IF_ERROR(context_.budget.Ensure(&segment.arena, binding.arena_bytes, "the arena"));
  }
  MSRT_RETURN_IF_ERROR(frame->devices.Prepare(binding, frame->depth));
  context_.arena_lower_bound += binding.lower_bound_bytes;
  MSRT_RETURN_IF_ERROR(AllocateOutputs(frame, binding));
  if (pointers_.size() < binding.max_views) pointers_.resize(binding.max_views);
  for (uint32_t i = 0; i < binding.steps.size(); ++i) MSRT_RETURN_IF_ERROR(RunStep(frame, i));
  return frame->devices.Synchronize();
}

Status StepRunner::AllocateOutputs(Frame* frame, const Binding& binding) {
  const Program& program = frame->program();
  const Graph& graph = frame->graph_of();
  for (size_t i = 0; i < frame->outputs.size(); ++i) {
    const Type& type = binding.output_types[i];
    // A later binding of this run knows the type; control steps allocate their own results.
    const Buffer& buffer = program.buffers[program.output_buffers[i]];
    if (!type.concrete() || buffer.held >= 0) continue;
    if (buffer.state.device != 0) {
      MSRT_RETURN_IF_ERROR(values_.Allocate(frame, frame->outputs[i], buffer.state.device, type));
      continue;
    }
    auto placed = AllocateResult(frame->outputs[i], type, graph.value(graph.outputs[i]).name,
                                 &context_.budget);
    if (!placed.ok()) return std::move(placed).status();
  }
  return OkStatus();
}

Status StepRunner::RunStep(Frame* frame, uint32_t bound) {
  const BoundStep& step = frame->segment().binding->steps[bound];
  const Step& what = frame->program().steps[step.step];
  MSRT_RETURN_IF_ERROR(context_.CheckStopped(frame->program(), what));
  for (size_t i = 0; i < step.locations.size(); ++i)
    pointers_[i] = Resolve(*frame, context_.states, step.locations[i], frame->depth);
  for (const EventId& event : step.waits) MSRT_RETURN_IF_ERROR(frame->devices.Wait(event));
  const bool profile = context_.options.profile;
  const int64_t begin = profile ? MonotonicNanos() : 0;
  Status status = Execute(frame, step);
  if (profile)
    context_.profile.steps.push_back(
        {step.step, begin, MonotonicNanos(), frame->placed, frame->segment().binding, bound});
  if (!status.ok()) return std::move(status).Within(Describe(frame->program(), what));
  return step.event < 0 ? OkStatus()
                        : frame->devices.Record({step.device, static_cast<uint32_t>(step.event)});
}

Status StepRunner::RunKernel(Frame* frame, const BoundStep& step) {
  const Program& program = frame->program();
  msrt_run_args args = MSRT_INIT(msrt_run_args);
  args.host = program.host->api();
  args.inputs = pointers_.data();
  args.input_count = step.input_count;
  args.outputs = pointers_.data() + step.input_count;
  args.output_count = step.locations.size() - step.input_count;
  scratch_.ForgetFailure();
  const msrt_scratch scratch{&scratch_, [](void* context, size_t bytes) {
                               return static_cast<SessionScratch*>(context)->Get(bytes);
                             }};
  args.scratch = &scratch;
  if (step.device != 0) args.stream = frame->devices.stream(step.device);
  Status status = step.kernel.Run(args);
  if (status.ok()) return status;
  if (!scratch_.failure().ok()) return scratch_.failure();
  if (MayRunElsewhere(status.code(), step.device != 0))
    context_.failure.delegate = program.steps[step.step].delegate;
  return status;
}

TensorView StepRunner::ViewOf(const BoundStep& step, size_t i) const {
  TensorView view = step.views[i];
  view.data = pointers_[i];
  return view;
}

Status StepRunner::Execute(Frame* frame, const BoundStep& step) {
  ParallelFor& parallel = *context_.model.parallel;
  switch (step.kind) {
    case StepKind::kKernel:
      return RunKernel(frame, step);
    case StepKind::kConvert: {
      // A copy may change dims (a view that had to be materialised), never the order of elements.
      TensorView from = ViewOf(step, 0);
      const TensorView to = ViewOf(step, step.input_count);
      if (from.layout == to.layout) from.dims = to.dims;
      return ConvertLayout(from, to, parallel);
    }
    case StepKind::kCopyToDevice:
    case StepKind::kCopyToHost: {
      const TensorView& view = step.views[0];
      const size_t bytes = BytesIn(view.layout, view.dtype, view.dims);
      return step.kind == StepKind::kCopyToDevice
                 ? frame->devices.CopyToDevice(step.device, pointers_[1], pointers_[0], bytes)
                 : frame->devices.CopyToHost(step.device, pointers_[1], pointers_[0], bytes);
    }
    case StepKind::kStateRead:
      return ConvertLayout(context_.states.CurrentView(step.slot), ViewOf(step, 0), parallel);
    case StepKind::kStateWrite:
      return context_.states.WritePending(step.slot, ViewOf(step, 0));
    case StepKind::kView:
    case StepKind::kControl:
      return OkStatus();
  }
  return OkStatus();
}

}  // namespace msrt
