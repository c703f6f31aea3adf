#include "core/run/step_runner.h"

#include "core/run/collective.h"
#include "core/run/convert.h"
#include "core/run/exchange.h"
#include "core/run/resolve.h"
#include "core/run/results.h"

namespace msrt {

Status StepRunner::RunSegment(Frame* frame) {
  BoundSegment& segment = frame->segment();
  const Binding& binding = *segment.binding;
  if (segment.arena.data() == nullptr || segment.arena.bytes() < binding.arena_bytes) {
    MSRT_RETURN_IF_ERROR(context_.budget.Ensure(&segment.arena, binding.arena_bytes, "the arena"));
  }
  const bool alone = binding.event_counts.empty();  // there is no queue but the host
  if (!alone) MSRT_RETURN_IF_ERROR(Prepare(frame, binding));
  context_.arena_lower_bound += binding.lower_bound_bytes;
  if (!binding.is_piece) MSRT_RETURN_IF_ERROR(AllocateOutputs(frame, binding));
  if (pointers_.size() < binding.max_views) pointers_.resize(binding.max_views);
  if (!alone) return RunOnQueues(frame, binding);
  return RunSteps(frame, binding, [](const BoundStep&) { return true; });
}

// Makes the queues, events and arenas that the binding needs.
Status StepRunner::Prepare(Frame* frame, const Binding& binding) {
  const Program& program = frame->program();
  std::vector<DeviceBlock>& arenas = frame->segment().device_arenas;
  arenas.resize(program.devices.size());
  for (uint16_t d = 1; d < program.devices.size(); ++d) {
    if (program.devices[d] == nullptr) continue;
    MSRT_ASSIGN_OR_RETURN(DeviceQueue* const queue,
                          values_.QueueOf(frame, d, binding.event_counts[d]));
    MSRT_RETURN_IF_ERROR(queue->Ensure(&arenas[d], binding.device_arena_bytes[d], "the arena"));
  }
  return OkStatus();
}

Status StepRunner::RunOnQueues(Frame* frame, const Binding& binding) {
  if (binding.joins_queues) MSRT_RETURN_IF_ERROR(JoinQueues(frame));
  const bool capture = binding.captured_queue != kHostQueue && !context_.options.profile;
  if (capture) {
    MSRT_RETURN_IF_ERROR(RunCaptured(frame, binding));
  } else {
    MSRT_RETURN_IF_ERROR(RunSteps(frame, binding, [](const BoundStep&) { return true; }));
  }
  if (binding.joins_queues) MSRT_RETURN_IF_ERROR(JoinQueues(frame));
  return EndOnQueues(frame, binding);
}

// Each queue waits for all others: segments before and after know nothing of each other's steps.
Status StepRunner::JoinQueues(Frame* frame) {
  for (DeviceQueue* queue : frame->queues) {
    for (DeviceQueue* other : frame->queues) {
      if (queue != nullptr && other != nullptr && queue != other)
        MSRT_RETURN_IF_ERROR(queue->Join(other));
    }
  }
  return OkStatus();
}

Status StepRunner::EndOnQueues(Frame* frame, const Binding& binding) {
  for (const EventId& e : binding.end_waits) MSRT_RETURN_IF_ERROR(HostWait(frame, e));
  for (const InputWait& w : binding.input_waits) {
    if (w.input < frame->stable_from) MSRT_RETURN_IF_ERROR(HostWait(frame, w.event));
    else context_.reads_caller = true;
  }
  for (DeviceQueue* queue : frame->queues) {
    if (queue != nullptr) MSRT_RETURN_IF_ERROR(queue->EndSegment(frame->segment().binding));
  }
  return OkStatus();
}

// The host's steps and those of the device do not depend on each other. Values of slots that are
// kept on the device are moved there first: mostly they are there already.
Status StepRunner::RunCaptured(Frame* frame, const Binding& binding) {
  const QueueId queue = binding.captured_queue;
  const auto is_kept = [](const BoundStep& s) { return s.is_kept; };
  const auto is_captured = [&](const BoundStep& s) { return s.queue == queue && !s.is_kept; };
  MSRT_RETURN_IF_ERROR(RunSteps(frame, binding, is_kept));
  replay_key_.clear();
  const auto add_address = [&](const Location& place) {
    const void* const address = Resolve(*frame, context_.states, place, frame->depth);
    replay_key_.push_back(reinterpret_cast<uintptr_t>(address));
  };
  for (const BoundStep& step : binding.steps) {
    if (!is_captured(step)) continue;
    for (size_t i = 0; i < step.locations.size(); ++i) {
      const Location& place = step.locations[i];
      add_address(place);
      if (i < step.input_count && IsOfSlot(place))
        replay_key_.push_back(context_.states.Version(place.index, place.offset % 2 != 0));
    }
    add_address(step.workspace);
  }
  Replay* replay = nullptr;
  switch (ChooseReplay(frame->segment().binding, replay_key_, &frame->segment().replays, &replay)) {
    case ReplayMode::kEnqueue:
      return RunSteps(frame, binding, [&](const BoundStep& s) { return !is_kept(s); });
    case ReplayMode::kCapture:
      MSRT_RETURN_IF_ERROR(Capture(frame, binding, replay));
      break;
    case ReplayMode::kRun:
      MSRT_RETURN_IF_ERROR(frame->queues[queue]->RunRecording(replay->recording));
      break;
  }
  return RunSteps(frame, binding,
                  [&](const BoundStep& s) { return s.queue != queue && !s.is_kept; });
}

Status StepRunner::Capture(Frame* frame, const Binding& binding, Replay* replay) {
  const QueueId queue = binding.captured_queue;
  DeviceQueue& on_device = *frame->queues[queue];
  MSRT_RETURN_IF_ERROR(on_device.WithDevice(on_device.stream().BeginCapture(on_device.host())));
  const auto is_captured = [&](const BoundStep& s) { return s.queue == queue && !s.is_kept; };
  struct Recorded {
    std::unique_ptr<Recording> recording;
    std::vector<std::shared_ptr<const void>> forms;
  };
  auto recorded = std::make_shared<Recorded>();
  packed_copies_ = false;
  recorded_forms_ = &recorded->forms;
  Status status = RunSteps(frame, binding, is_captured);
  recorded_forms_ = nullptr;
  auto recording = on_device.stream().EndCapture(on_device.host());
  MSRT_RETURN_IF_ERROR(std::move(status));
  // The form of a copy has no version by which a replay could tell that it is out of date.
  if (!recording.ok() || packed_copies_) {
    frame->segment().replays.refused = true;
    return RunSteps(frame, binding, is_captured);
  }
  recorded->recording = *std::move(recording);
  replay->recording = std::shared_ptr<const Recording>(recorded, recorded->recording.get());
  return on_device.RunRecording(replay->recording);
}

Status StepRunner::RunSteps(Frame* frame, const Binding& binding,
                            FunctionRef<bool(const BoundStep&)> which) {
  const auto seconds = [&](const BoundStep& step) {
    return frame->program().steps[step.step].seconds;
  };
  double all = 0, done = 0;
  for (const BoundStep& step : binding.steps) all += context_.options.progress ? seconds(step) : 0;
  for (uint32_t i = 0; i < binding.steps.size(); ++i) {
    if (which(binding.steps[i])) MSRT_RETURN_IF_ERROR(RunStep(frame, i));
    if (all > 0) (*context_.options.progress)((done += seconds(binding.steps[i])) / all);
  }
  return OkStatus();
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
      MSRT_RETURN_IF_ERROR(
          CheckBound(*frame->outputs[i], type, graph.value(graph.outputs[i]).name));
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
  const bool is_there =
      step.is_kept && Resolve(*frame, context_.states, step.locations[1], frame->depth) != nullptr;
  if (!is_there && context_.states.AnyOnDevice()) MSRT_RETURN_IF_ERROR(FetchState(step));
  if (step.touches_state) MSRT_RETURN_IF_ERROR(BeginStateUpdates(frame, step));
  // The source of a copy that is there already may be about to be fetched by another session.
  for (size_t i = is_there ? 1 : 0; i < step.locations.size(); ++i)
    pointers_[i] = Resolve(*frame, context_.states, step.locations[i], frame->depth);
  if (!step.waits.empty()) MSRT_RETURN_IF_ERROR(Wait(frame, step));
  const bool profile = context_.options.profile;
  const int64_t begin = profile ? MonotonicNanos() : 0;
  Status status = step.is_kept ? CopyState(frame, step) : Execute(frame, step);
  if (profile)
    context_.profile.steps.push_back(
        {step.step, begin, MonotonicNanos(), frame->placed, frame->segment().binding, bound});
  if (!status.ok()) return std::move(status).Within(Describe(frame->program(), what));
  return step.event < 0 ? OkStatus() : Record(frame, step);
}

Status StepRunner::Record(Frame* frame, const BoundStep& step) {
  const auto event = static_cast<uint32_t>(step.event);
  if (!IsThread(step.queue)) return frame->queues[step.queue]->Record(event);
  ThreadOf(step.queue).Record(event);
  return OkStatus();
}

Status StepRunner::Wait(Frame* frame, const BoundStep& step) {
  for (const EventId& e : step.waits) {
    const bool by_host = !IsOnDevice(step.queue) || !IsOnDevice(e.queue);
    MSRT_RETURN_IF_ERROR(
        by_host ? HostWait(frame, e)
                : frame->queues[step.queue]->WaitFor(frame->queues[e.queue], e.number));
  }
  return OkStatus();
}

Status StepRunner::HostWait(Frame* frame, const EventId& event) {
  return IsThread(event.queue) ? ThreadOf(event.queue).Wait(event.number)
                               : frame->queues[event.queue]->Wait(event.number);
}

// Brings the values of slots that the step reads on the host there, if they are only on a device.
Status StepRunner::FetchState(const BoundStep& step) {
  if (step.kind == StepKind::kStateRead) return values_.FetchState(step.slot);
  for (size_t i = 0; i < step.input_count; ++i) {
    if (step.locations[i].kind == Location::kState)
      MSRT_RETURN_IF_ERROR(values_.FetchState(step.locations[i].index));
  }
  return OkStatus();
}

// Slots that the step writes in place may move to their own memory first.
Status StepRunner::BeginStateUpdates(Frame* frame, const BoundStep& step) {
  if (step.is_kept) return OkStatus();
  for (size_t i = step.input_count; i < step.locations.size(); ++i) {
    const Location& to = step.locations[i];
    if (to.kind == Location::kState) MSRT_RETURN_IF_ERROR(context_.states.BeginUpdate(to.index));
    if (to.kind != Location::kStateCopy) continue;
    const Device* const device = frame->program().devices[to.device].get();
    const TensorView& view = step.views[i];
    auto memory = context_.states.FindCopy(to.index, true, device, view.layout);
    if (memory == nullptr) {
      MSRT_ASSIGN_OR_RETURN(memory, MakeStateCopy(frame, to.device, view));
    }
    context_.states.BeginUpdateOn(to.index, std::move(memory));
  }
  return OkStatus();
}

// Returns memory for a value like this on a device (0: the host).
Result<std::shared_ptr<StateCopy>> StepRunner::MakeStateCopy(Frame* frame, uint16_t device,
                                                             const TensorView& view) {
  const size_t bytes = BytesIn(view.layout, view.dtype, view.dims);
  auto copy = std::make_shared<StateCopy>();
  copy->device = frame->program().devices[device].get();
  copy->layout = view.layout;
  if (device != 0) {
    MSRT_RETURN_IF_ERROR(frame->queues[device]->Ensure(&copy->on_device, bytes, "state"));
  } else {
    MSRT_ASSIGN_OR_RETURN(copy->on_host, context_.budget.Make(bytes, "state"));
  }
  return copy;
}

// Moves the value of a slot to a device or into a layout, unless that has been done since the value
// changed. The host waits: other sessions may read the copy in other queues.
Status StepRunner::CopyState(Frame* frame, const BoundStep& step) {
  const Location& to = step.locations[1];
  const bool current = to.offset % 2 != 0;
  if (pointers_[1] != nullptr) return OkStatus();
  const auto lock = context_.states.LockCopies(to.index);
  pointers_[1] = Resolve(*frame, context_.states, to, frame->depth);
  if (pointers_[1] != nullptr) return OkStatus();
  MSRT_ASSIGN_OR_RETURN(std::shared_ptr<StateCopy> copy,
                        MakeStateCopy(frame, to.device, step.views[1]));
  pointers_[1] = copy->data();
  MSRT_RETURN_IF_ERROR(Execute(frame, step));
  if (IsOnDevice(step.queue)) MSRT_RETURN_IF_ERROR(frame->queues[step.queue]->Synchronize());
  context_.states.AddCopy(to.index, current, std::move(copy));
  return OkStatus();
}

Status StepRunner::RunKernel(Frame* frame, const BoundStep& step) {
  const Program& program = frame->program();
  void* const workspace = step.workspace.kind == Location::kNowhere
                              ? nullptr
                              : Resolve(*frame, context_.states, step.workspace, frame->depth);
  if (step.queue == kThreadQueue) {
    return thread_.Run(*frame, step, std::span(pointers_).first(step.locations.size()), workspace,
                       {program.steps[step.step].delegate, frame->graph, frame->placed});
  }
  msrt_run_args& args = args_;
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
  args.device = step.kernel->device();
  args.stream = step.queue == kHostQueue ? nullptr : frame->queues[step.queue]->stream().handle();
  args.workspace = workspace;
  StateInputs states(&context_.states, &context_.budget, *frame, step);
  states.AddTo(&args);
  Status status = step.kernel->Run(args);
  if (IsOnDevice(step.queue)) HoldForms(frame, step, &states);
  if (status.ok()) return status;
  if (!scratch_.failure().ok()) return scratch_.failure();
  if (MayRunElsewhere(status.code(), IsOnDevice(step.queue)))
    context_.failure.delegate = program.steps[step.step].delegate;
  return status;
}

// Work that is enqueued or recorded reads them later.
void StepRunner::HoldForms(Frame* frame, const BoundStep& step, StateInputs* states) {
  packed_copies_ |= states->packed_copies();
  const size_t bytes = states->form_bytes();
  for (std::shared_ptr<const void>& form : states->TakeForms()) {
    if (recorded_forms_ != nullptr) recorded_forms_->push_back(form);
    frame->queues[step.queue]->HoldForm(std::move(form));
  }
  frame->queues[step.queue]->CountForms(bytes);
}

TensorView StepRunner::ViewOf(const BoundStep& step, size_t i) const {
  TensorView view = step.views[i];
  view.data = pointers_[i];
  return view;
}

Status StepRunner::Convert(Frame* frame, const BoundStep& step) {
  // A copy may change dims (a view that had to be materialised), never the order of elements.
  TensorView from = ViewOf(step, 0);
  const TensorView to = ViewOf(step, step.input_count);
  if (from.layout == to.layout && from.strides == nullptr) from.dims = to.dims;
  if (step.queue == kHostQueue) return ConvertLayout(from, to, *context_.model.parallel);
  DeviceQueue& queue = *frame->queues[step.queue];
  if (from.layout != to.layout) return queue.Convert(from, to);
  const size_t bytes = BytesIn(to.layout, to.dtype, to.dims);
  return queue.CopyPeer(to.data, queue.device(), from.data, bytes);
}

Status StepRunner::Copy(Frame* frame, const BoundStep& step) {
  const TensorView& view = step.views[0];
  const size_t bytes = BytesIn(view.layout, view.dtype, view.dims);
  DeviceQueue& queue = *frame->queues[step.queue];
  void *const from = pointers_[0], *const to = pointers_[1];
  if (step.kind == StepKind::kCopyToHost) return queue.CopyToHost(to, from, bytes);
  if (step.kind == StepKind::kCopyToDevice) return queue.CopyToDevice(to, from, bytes, step.staged);
  const Program& program = frame->program();
  const BufferId source = program.steps[step.step].inputs[0];
  return queue.CopyPeer(to, *program.devices[program.buffers[source].state.device], from, bytes);
}

Status StepRunner::EnqueueExchange(Frame* frame, const BoundStep& step) {
  const auto& collective = frame->program().steps[step.step].collective;
  if (context_.communicator == nullptr && collective == nullptr)
    return InvalidArgument("the model communicates, but the session has no communicator");
  std::vector<TensorView> views;
  for (size_t i = 0; i < step.views.size(); ++i) views.push_back(ViewOf(step, i));
  const WaitLimit limit =
      LimitOf(context_.options, context_.model.environment->clock, &context_.cancelled);
  if (collective != nullptr) {
    Communicator* comm = context_.communicator;
    if (comm != nullptr && collective->background) comm = context_.background;
    if (comm == nullptr && context_.communicator != nullptr)
      return InvalidArgument(
          "the model has collectives in the background, but the session has no communicator for "
          "them: set background_communicator");
    ThreadOf(step.queue)
        .Enqueue(
            [plan = collective, views = std::move(views), limit, inputs = step.input_count, comm,
             allocator = context_.model.environment->allocator](ExchangeTotals* totals) {
              return RunCollective(*plan, std::span(views).first(inputs),
                                   std::span(views).subspan(inputs), comm, limit, allocator,
                                   totals);
            },
            {});
    return OkStatus();
  }
  thread_.Enqueue(
      [plan = frame->program().steps[step.step].exchange, views = std::move(views), limit,
       inputs = step.input_count, comm = context_.communicator,
       allocator = context_.model.environment->allocator](ExchangeTotals* totals) {
        return RunExchange(*plan, std::span(views).first(inputs), std::span(views).subspan(inputs),
                           comm, limit, allocator, totals);
      },
      {});
  return OkStatus();
}

Status StepRunner::Execute(Frame* frame, const BoundStep& step) {
  ParallelFor& parallel = *context_.model.parallel;
  switch (step.kind) {
    case StepKind::kKernel:
      return RunKernel(frame, step);
    case StepKind::kConvert:
      return Convert(frame, step);
    case StepKind::kCopyToDevice:
    case StepKind::kCopyToHost:
    case StepKind::kCopyPeer:
      return Copy(frame, step);
    case StepKind::kStateRead:
      return ConvertLayout(context_.states.CurrentView(step.slot), ViewOf(step, 0), parallel);
    case StepKind::kStateWrite:
      if (!step.views.empty()) return context_.states.WriteInRun(step.slot, ViewOf(step, 0));
      context_.states.EndUpdateOn(step.slot);
      return OkStatus();
    case StepKind::kExchange:
      return EnqueueExchange(frame, step);
    case StepKind::kView:
    case StepKind::kControl:
      return OkStatus();
  }
  return OkStatus();
}

}  // namespace msrt
