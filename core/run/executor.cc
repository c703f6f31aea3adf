#include "core/run/executor.h"

#include <algorithm>
#include <cstring>

#include "core/run/convert.h"
#include "core/run/state_inputs.h"

namespace msrt {
namespace {

// Maximum number of frames that an error names, innermost first.
constexpr size_t kNamedFrames = 4;

// One level of recursion is a frame of the graph that calls itself and the frames of the branches
// and bodies from which it does so. No model nests more of these; more of them mean graphs that
// call each other without end.
constexpr size_t kFramesPerLevel = 8;

// Records a type that a binding depends on. A binding for another type is dropped first, so that no
// failure can leave a binding that does not fit the recorded type.
void RecordType(DType dtype, const Dims& dims, Type* type,
                std::shared_ptr<const Binding>* binding) {
  if (type->is_tensor() && type->dtype == dtype && type->dims == dims) return;
  binding->reset();
  *type = Type::Tensor(dtype, dims);
}

}  // namespace

// Returns all frames when a run ends, however it ends. Synchronizes first: work enqueued on devices
// still uses memory of the session and of the caller.
class Executor::Unwind {
 public:
  explicit Unwind(Executor* executor) : executor_(*executor) {}
  ~Unwind() {
    while (!executor_.stack_.empty()) {
      (void)executor_.stack_.back()->devices.Synchronize();
      executor_.Pop();
    }
  }

 private:
  Executor& executor_;
};

Status Executor::Run(uint32_t graph, std::span<const RunValue> inputs,
                     std::span<ResultCell> outputs, const RunOptions& options) {
  ++run_;
  calls_ = 0;
  options_ = options;
  failure_ = {};
  profile_ = {};
  if (options.profile) profile_.begin_nanos = MonotonicNanos();
  arena_lower_bound_ = 0;
  const Unwind unwind(this);
  targets_.clear();
  for (ResultCell& cell : outputs) targets_.push_back(&cell);
  Status status = Push(graph, inputs, targets_);
  if (status.ok()) {
    binding_.reset();  // before its program
    binding_placed_ = stack_[0]->placed;
    if (options.profile) profile_.placed = binding_placed_;
    binding_ = stack_[0]->segments[0].binding;
    status = LoopOnTeam();
  }
  if (options.profile) profile_.end_nanos = MonotonicNanos();
  if (status.ok()) return status;
  RecordFailure(status);
  // From the innermost frame outwards, but not a hundred thousand times.
  for (size_t i = stack_.size(), named = 0; i-- > 1 && named < kNamedFrames; ++named) {
    const Frame& caller = *stack_[i - 1];
    const size_t at = caller.segments[caller.depth].binding->end_step;
    status = std::move(status).Within(StrCat(Describe(caller.program(), caller.program().steps[at]),
                                             " in graph '", stack_[i]->graph_of().name, "'"));
  }
  return status;
}

// Only the innermost frame has work in progress on devices; its failures show when it ends.
void Executor::RecordFailure(const Status& status) {
  if (stack_.empty()) return;
  Frame& frame = *stack_.back();
  (void)frame.devices.Synchronize();
  if (failure_.placed == nullptr) {
    failure_.graph = frame.graph;
    failure_.placed = frame.placed;
  }
  const std::string binder = FailedDelegateName(status);
  if (!binder.empty()) failure_.delegate = binder;
  if (failure_.delegate.empty()) failure_.delegate = frame.devices.failed();
}

// Runs of one runtime take turns; cancellation and deadline also apply while this one waits.
Status Executor::LoopOnTeam() {
  const WaitLimit limit = LimitOf(options_, model_.environment->clock, &cancelled_);
  Status status;
  if (model_.parallel->TryOnTeam([&] { status = Loop(); }, limit)) return status;
  if (cancelled_.load()) return MakeStatus(Code::kCancelled, "the run was cancelled");
  return MakeStatus(Code::kDeadlineExceeded,
                    "the run passed its deadline while it waited for other runs of the runtime");
}

Status Executor::Loop() {
  for (;;) {
    Frame* frame = stack_.back().get();
    MSRT_RETURN_IF_ERROR(RunSegment(frame));
    bool done = true;
    if (frame->segment().binding->end_step != frame->program().steps.size()) {
      if (frame->program().steps[frame->segment().binding->end_step].kind == StepKind::kControl) {
        BeginRecord(frame);
        MSRT_ASSIGN_OR_RETURN(done, BeginControl(frame));
      }
    } else {
      FinishOutputs(frame);
      Pop();
      if (stack_.empty()) return OkStatus();
      frame = stack_.back().get();
      MSRT_ASSIGN_OR_RETURN(done, ResumeControl(frame));
    }
    if (!done) continue;
    EndRecord(frame);
    MSRT_RETURN_IF_ERROR(NextSegment(frame));
  }
}

void Executor::BeginRecord(Frame* frame) {
  if (!options_.profile) return;
  const auto step = static_cast<uint32_t>(frame->segment().binding->end_step);
  const int64_t now = MonotonicNanos();
  if (!frame->program().steps[step].tail) frame->profiled = profile_.steps.size();
  profile_.steps.push_back({step, now, now, frame->placed, nullptr});
}

void Executor::EndRecord(Frame* frame) {
  if (frame->profiled == Frame::kNotProfiled) return;
  profile_.steps[frame->profiled].end_nanos = MonotonicNanos();
  frame->profiled = Frame::kNotProfiled;
}

Status Executor::CheckLimits(uint32_t graph, const Frame* replaced) const {
  const size_t active = frame_counts_[graph] - idle_[graph].size() -
                        (replaced != nullptr && replaced->graph == graph ? 1 : 0);
  if (active >= options_.max_depth) {
    return LimitExceeded("graph '", model_.module.graphs[graph].name, "' is active ", active,
                         " times at once: it may call itself without end; if it does not, raise "
                         "max_depth of the run");
  }
  if (stack_.size() / kFramesPerLevel >= options_.max_depth) {
    return LimitExceeded(
        stack_.size(), " graphs are active at once, the last of them '",
        model_.module.graphs[graph].name,
        "': graphs may call each other without end; if they do not, raise max_depth of the run");
  }
  if (options_.max_calls != 0 && calls_ >= options_.max_calls) {
    return LimitExceeded("the run has made ", calls_,
                         " calls and iterations, which is its max_calls; a loop may have no end");
  }
  return OkStatus();
}

Result<Executor::FrameOwner> Executor::Acquire(uint32_t graph, const Frame* replaced) {
  MSRT_RETURN_IF_ERROR(CheckLimits(graph, replaced));
  ++calls_;
  // Reserve room on the stack and among the idle frames: returning a frame must not fail.
  if (stack_.size() == stack_.capacity()) stack_.reserve(2 * stack_.size() + 4);
  FrameOwner frame;
  if (idle_[graph].empty()) {
    if (frame_counts_[graph] >= idle_[graph].capacity())
      idle_[graph].reserve(2 * (frame_counts_[graph] + 1));
    frame = std::make_unique<Frame>();
    frame->graph = graph;
    Refresh(frame.get());
    const size_t bytes = OwnBytes(*frame);
    MSRT_RETURN_IF_ERROR(budget_.Reserve(
        bytes, StrCat("a frame of graph '", model_.module.graphs[graph].name, "'")));
    frame->own_bytes = bytes;
    ++frame_counts_[graph];
  } else {
    frame = std::move(idle_[graph].back());
    idle_[graph].pop_back();
  }
  if (frame->run != run_) Refresh(frame.get());
  frame->depth = 0;
  frame->profiled = Frame::kNotProfiled;
  return frame;
}

// The program of the graph may have been replaced since the frame was last used.
void Executor::Refresh(Frame* frame) {
  frame->run = run_;
  std::shared_ptr<const EntryProgram> current = model_.graphs[frame->graph]->current();
  frame->devices.ForgetFailure();
  if (frame->placed == current) return;
  ReleaseSegments(frame, &budget_);
  frame->request = {};
  // Streams are destroyed before the program that owns their devices.
  frame->devices.Reset(current->program.get());
  frame->placed = std::move(current);
  for (ResultCell& cell : frame->held) Release(&cell, &budget_);
  frame->held.resize(frame->program().held_count);
  frame->inputs.resize(frame->graph_of().inputs.size());
}

Status Executor::Push(uint32_t graph, std::span<const RunValue> inputs,
                      std::span<ResultCell* const> outputs) {
  MSRT_ASSIGN_OR_RETURN(FrameOwner owner, Acquire(graph, nullptr));
  stack_.push_back(std::move(owner));
  Frame* frame = stack_.back().get();
  std::copy(inputs.begin(), inputs.end(), frame->inputs.begin());
  frame->outputs.assign(outputs.begin(), outputs.end());
  return BindInputs(frame);
}

void Executor::Pop() {
  Frame* frame = stack_.back().get();
  // Idle frames must not keep inputs alive.
  for (RunValue& v : frame->inputs) v.owner.reset();
  idle_[frame->graph].push_back(std::move(stack_.back()));
  stack_.pop_back();
}

Status Executor::BindInputs(Frame* frame) {
  const Program& program = frame->program();
  const Graph& graph = frame->graph_of();
  frame->request.inputs.resize(frame->inputs.size());
  if (frame->segments.empty()) frame->segments.emplace_back();
  std::shared_ptr<const Binding>* const binding = &frame->segments[0].binding;
  for (size_t i = 0; i < frame->inputs.size(); ++i) {
    const RunValue& input = frame->inputs[i];
    if (!input.present())
      return InvalidArgument("input ", i, " '", graph.value(graph.inputs[i]).name, "' is not set");
    if (input.kind == TypeKind::kTensor) {
      RecordType(input.tensor.dtype, input.tensor.dims, &frame->request.inputs[i], binding);
      if (input.device != DeviceOfInput(program, i)) MSRT_RETURN_IF_ERROR(MoveInput(frame, i));
      continue;
    }
    frame->request.inputs[i] = graph.value(graph.inputs[i]).type;
    if (frame->request.inputs[i].kind != input.kind) {
      return InvalidArgument("input ", i, " '", graph.value(graph.inputs[i]).name, "' must be ",
                             frame->request.inputs[i]);
    }
    frame->held[static_cast<size_t>(program.buffers[program.input_buffers[i]].held)].value = input;
  }
  RecordStates(program, &frame->request.states, &frame->state_types, binding);
  if (*binding != nullptr) return OkStatus();
  MSRT_ASSIGN_OR_RETURN(*binding, BindingFor(model_, *frame->placed, frame->request));
  return OkStatus();
}

// Records the types of the slots that the program touches, if any has changed since `*seen`.
void Executor::RecordStates(const Program& program, std::vector<Type>* types, uint64_t* seen,
                            std::shared_ptr<const Binding>* binding) const {
  const std::vector<uint32_t>& slots = program.state_slots;
  if (*seen == states_.type_changes() && types->size() == slots.size()) return;
  types->resize(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    const Type& type = states_.CurrentType(slots[i]);
    RecordType(type.dtype, type.dims, &(*types)[i], binding);
  }
  *seen = states_.type_changes();
}

Status Executor::RunSegment(Frame* frame) {
  BoundSegment& segment = frame->segment();
  const Binding& binding = *segment.binding;
  if (segment.arena.data() == nullptr || segment.arena.bytes() < binding.arena_bytes) {
    MSRT_RETURN_IF_ERROR(budget_.Ensure(&segment.arena, binding.arena_bytes, "the arena"));
  }
  MSRT_RETURN_IF_ERROR(frame->devices.Prepare(binding, frame->depth));
  arena_lower_bound_ += binding.lower_bound_bytes;
  MSRT_RETURN_IF_ERROR(AllocateOutputs(frame, binding));
  if (pointers_.size() < binding.max_views) pointers_.resize(binding.max_views);
  for (uint32_t i = 0; i < binding.steps.size(); ++i) MSRT_RETURN_IF_ERROR(RunStep(frame, i));
  return frame->devices.Synchronize();
}

// Binds the steps after the one that ended the segment: its outputs, or the data that determines
// their sizes, exist by now.
Status Executor::NextSegment(Frame* frame) {
  const Program& program = frame->program();
  const Step& ended = program.steps[frame->segment().binding->end_step];
  if (frame->segments.size() == frame->depth + 1) frame->segments.emplace_back();
  MSRT_RETURN_IF_ERROR(ended.kind == StepKind::kControl ? SegmentAfterControl(frame, ended)
                                                        : SegmentAfterData(frame));
  ++frame->depth;
  return OkStatus();
}

Status Executor::SegmentAfterData(Frame* frame) {
  constexpr size_t kMaxRememberedBytes = 4096;
  BoundSegment& next = frame->segments[frame->depth + 1];
  MSRT_ASSIGN_OR_RETURN(const bool same, DataUnchanged(frame, next));
  if (same) return OkStatus();
  next.binding.reset();
  next.reads.clear();
  size_t read_bytes = 0;
  auto binding =
      Continue(frame->program(), *model_.environment->evaluator, frame->segment().binding,
               frame->depth + 1, [&](BufferId b, void* to, size_t bytes) {
                 MSRT_RETURN_IF_ERROR(Read(frame, b, to, bytes));
                 read_bytes += bytes;
                 const auto* data = static_cast<const std::byte*>(to);
                 if (read_bytes <= kMaxRememberedBytes)
                   next.reads.push_back({b, {data, data + bytes}});
                 return OkStatus();
               });
  if (read_bytes > kMaxRememberedBytes) next.reads.clear();
  if (!binding.ok()) return std::move(binding).status();
  return SetOwnBinding(&next, *std::move(binding));
}

// Whether the data that determined the sizes of `next` is unchanged.
Result<bool> Executor::DataUnchanged(Frame* frame, const BoundSegment& next) {
  if (next.binding == nullptr || next.binding->previous != frame->segment().binding ||
      next.reads.empty())
    return false;
  for (const DataRead& read : next.reads) {
    read_.resize(read.bytes.size());
    MSRT_RETURN_IF_ERROR(Read(frame, read.buffer, read_.data(), read_.size()));
    if (read_ != read.bytes) return false;
  }
  return true;
}

Status Executor::SegmentAfterControl(Frame* frame, const Step& control) {
  const Program& program = frame->program();
  BoundSegment& next = frame->segments[frame->depth + 1];
  if (next.binding != nullptr && next.binding->previous != frame->segment().binding)
    next.binding.reset();
  next.results.resize(control.outputs.size());
  for (size_t i = 0; i < control.outputs.size(); ++i) {
    if (control.outputs[i] == kNoBuffer) continue;
    const RunValue& value = CellOf(frame, control, i)->value;
    if (value.kind == TypeKind::kTensor)
      RecordType(value.tensor.dtype, value.tensor.dims, &next.results[i], &next.binding);
    else next.results[i] = frame->graph_of().value(program.buffers[control.outputs[i]].value).type;
  }
  RecordStates(program, &next.states, &next.state_types, &next.binding);
  return next.binding != nullptr ? OkStatus() : BindAfterControl(frame, &next);
}

// A recursion makes many frames of one graph that continue with the same types: the binding of the
// last one is reused for the next.
Status Executor::BindAfterControl(Frame* frame, BoundSegment* next) {
  std::vector<Continuation>& known = continuations_[frame->graph];
  if (known.size() <= frame->depth) known.resize(frame->depth + 1);
  Continuation& last = known[frame->depth];
  budget_.Release(next->own_bytes);
  next->own_bytes = 0;
  if (last.binding != nullptr && last.binding->previous == frame->segment().binding &&
      last.results == next->results && last.states == next->states) {
    next->binding = last.binding;
    return OkStatus();
  }
  auto binding =
      ContinueAfterControl(frame->program(), *model_.environment->evaluator,
                           frame->segment().binding, frame->depth + 1, next->results, next->states);
  if (!binding.ok()) return std::move(binding).status();
  MSRT_RETURN_IF_ERROR(SetOwnBinding(next, *std::move(binding)));
  last.binding.reset();  // before its program
  last = {frame->placed, next->binding, next->results, next->states};
  return OkStatus();
}

Status Executor::SetOwnBinding(BoundSegment* segment, std::shared_ptr<const Binding> binding) {
  budget_.Release(segment->own_bytes);
  segment->own_bytes = 0;
  MSRT_RETURN_IF_ERROR(budget_.Reserve(binding->bytes, "a binding"));
  segment->own_bytes = binding->bytes;
  segment->binding = std::move(binding);
  return OkStatus();
}

// Copies the bytes of a buffer that exists by now, on the host or on a device.
Status Executor::Read(Frame* frame, BufferId b, void* to, size_t bytes) {
  const void* from = Resolve(*frame, frame->segment().binding->locations[b], frame->depth);
  const uint16_t device = frame->program().buffers[b].state.device;
  if (device == 0) {
    std::memcpy(to, from, bytes);
    return OkStatus();
  }
  MSRT_RETURN_IF_ERROR(frame->devices.CopyToHost(device, to, from, bytes));
  return frame->devices.Synchronize();
}

Status Executor::AllocateOutputs(Frame* frame, const Binding& binding) {
  const Program& program = frame->program();
  const Graph& graph = frame->graph_of();
  for (size_t i = 0; i < frame->outputs.size(); ++i) {
    const Type& type = binding.output_types[i];
    // A later binding of this run knows the type; control steps allocate their own results.
    const Buffer& buffer = program.buffers[program.output_buffers[i]];
    if (!type.concrete() || buffer.held >= 0) continue;
    if (buffer.state.device != 0) {
      MSRT_RETURN_IF_ERROR(AllocateOnDevice(frame, frame->outputs[i], buffer.state.device, type));
      continue;
    }
    auto placed = AllocateResult(frame->outputs[i], type, graph.value(graph.outputs[i]).name);
    if (!placed.ok()) return std::move(placed).status();
  }
  return OkStatus();
}

Result<TensorView> Executor::AllocateResult(ResultCell* cell, const Type& type,
                                            std::string_view name) {
  const TensorView& last = cell->value.tensor;
  const bool there = cell->block != nullptr && last.data == cell->block->data() &&
                     last.dtype == type.dtype && last.dims == type.dims;
  if (there && !cell->bound.present() && cell->value.kind == TypeKind::kTensor) return last;
  TensorView view{type.dtype, type.dims, Layout::kPlain, nullptr};
  if (cell->bound.present()) {
    if (cell->bound.dtype != type.dtype || !(cell->bound.dims == type.dims)) {
      return InvalidArgument("output '", name, "' is ", type, ", but memory for ",
                             cell->bound.dtype, cell->bound.dims, " is bound to it");
    }
    view.data = cell->bound.data;
    cell->value = RunValue::Of(view, cell->bound_owner);
    return view;
  }
  if (cell->block == nullptr || cell->block->bytes() < type.bytes()) {
    MSRT_RETURN_IF_ERROR(budget_.Ensure(&cell->block, type.bytes(), StrCat("output '", name, "'")));
  }
  view.data = cell->block->data();
  cell->value = RunValue::Of(view, cell->block);
  return view;
}

Status Executor::Deliver(ResultCell* cell, const RunValue& value, ResultCell* source,
                         std::string_view name) {
  if (value.kind != TypeKind::kTensor || (value.lasting && !cell->bound.present())) {
    cell->value = value;
    return OkStatus();
  }
  const TensorView from = value.tensor;  // `value` may be that of either cell
  if (source != nullptr && !cell->bound.present()) {
    std::swap(cell->block, source->block);
    source->value = {};
    cell->value = RunValue::Of(from, cell->block);
    // Another owner of this memory may pass it back as an input.
    if (source->block.use_count() > 1) budget_.Release(&source->block);
    return OkStatus();
  }
  const Type type = Type::Tensor(from.dtype, from.dims);
  MSRT_ASSIGN_OR_RETURN(const TensorView to, AllocateResult(cell, type, name));
  if (type.bytes() != 0) std::memmove(to.data, from.data, type.bytes());
  return OkStatus();
}

// Passes lists and functions on to the caller.
void Executor::FinishOutputs(Frame* frame) {
  const Program& program = frame->program();
  const Graph& graph = frame->graph_of();
  for (size_t i = 0; i < frame->outputs.size(); ++i) {
    if (graph.value(graph.outputs[i]).type.is_tensor()) continue;
    frame->outputs[i]->value =
        frame->held[static_cast<size_t>(program.buffers[program.output_buffers[i]].held)].value;
  }
}

void* Executor::Resolve(const Frame& frame, const Location& place, uint32_t depth) const {
  switch (place.kind) {
    case Location::kNowhere:
      return nullptr;
    case Location::kArena:
      return ArenaOf(frame, place.device, depth) + place.offset;
    case Location::kEarlier:
      return ArenaOf(frame, place.device, place.index) + place.offset;
    case Location::kConstant:
      return const_cast<std::byte*>(place.data);
    case Location::kInput:
      return frame.inputs[place.index].tensor.data;
    case Location::kOutput:
      return frame.outputs[place.index]->value.tensor.data;
    case Location::kState:
      return states_.Memory(place.index, place.offset != 0);
    case Location::kHeld:
      return frame.held[place.index].value.tensor.data;
  }
  return nullptr;
}

std::byte* Executor::ArenaOf(const Frame& frame, uint16_t device, uint32_t depth) const {
  return device == 0 ? frame.segments[depth].arena.data() : frame.devices.arena(device, depth);
}

Status Executor::CheckStopped(const Frame& frame, const Step& step) const {
  if (cancelled_.load(std::memory_order_relaxed))
    return MakeStatus(Code::kCancelled, "the run was cancelled");
  if (options_.deadline_nanos != 0 &&
      model_.environment->clock->NowNanos() >= options_.deadline_nanos) {
    return MakeStatus(Code::kDeadlineExceeded, "the run passed its deadline before ",
                      Describe(frame.program(), step));
  }
  return OkStatus();
}

Status Executor::RunStep(Frame* frame, uint32_t bound) {
  const BoundStep& step = frame->segment().binding->steps[bound];
  const Step& what = frame->program().steps[step.step];
  MSRT_RETURN_IF_ERROR(CheckStopped(*frame, what));
  if (step.touches_state) MSRT_RETURN_IF_ERROR(BeginStateUpdates(step));
  for (size_t i = 0; i < step.locations.size(); ++i)
    pointers_[i] = Resolve(*frame, step.locations[i], frame->depth);
  for (const EventId& event : step.waits) MSRT_RETURN_IF_ERROR(frame->devices.Wait(event));
  const int64_t begin = options_.profile ? MonotonicNanos() : 0;
  Status status = Execute(frame, step);
  if (options_.profile)
    profile_.steps.push_back(
        {step.step, begin, MonotonicNanos(), frame->placed, frame->segment().binding, bound});
  if (!status.ok()) return std::move(status).Within(Describe(frame->program(), what));
  return step.event < 0 ? OkStatus()
                        : frame->devices.Record({step.device, static_cast<uint32_t>(step.event)});
}

// Slots that the step writes in place may move to their own memory first.
Status Executor::BeginStateUpdates(const BoundStep& step) {
  for (size_t i = step.input_count; i < step.locations.size(); ++i) {
    if (step.locations[i].kind == Location::kState)
      MSRT_RETURN_IF_ERROR(states_.BeginUpdate(step.locations[i].index));
  }
  return OkStatus();
}

Status Executor::RunKernel(Frame* frame, const BoundStep& step) {
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
  const StateInputs states(&states_, step);
  states.AddTo(&args);
  Status status = step.kernel.Run(args);
  if (status.ok()) return status;
  if (!scratch_.failure().ok()) return scratch_.failure();
  if (MayRunElsewhere(status.code(), step.device != 0))
    failure_.delegate = program.steps[step.step].delegate;
  return status;
}

TensorView Executor::ViewOf(const BoundStep& step, size_t i) const {
  TensorView view = step.views[i];
  view.data = pointers_[i];
  return view;
}

Status Executor::Execute(Frame* frame, const BoundStep& step) {
  ParallelFor& parallel = *model_.parallel;
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
      return ConvertLayout(states_.CurrentView(step.slot), ViewOf(step, 0), parallel);
    case StepKind::kStateWrite:
      return states_.WriteInRun(step.slot, ViewOf(step, 0));
    case StepKind::kView:
    case StepKind::kControl:
      return OkStatus();
  }
  return OkStatus();
}

void Executor::Trim() {
  for (auto& frames : idle_) {
    for (FrameOwner& frame : frames) {
      ReleaseMemory(frame.get(), &budget_);
    }
    frames.clear();
  }
  std::fill(frame_counts_.begin(), frame_counts_.end(), 0);
  for (auto& known : continuations_) known.clear();
  copy_streams_.clear();
  copy_devices_.clear();
  scratch_.Release();
}

size_t Executor::arena_bytes() const {
  size_t bytes = 0;
  for (const auto& frames : idle_) {
    for (const FrameOwner& frame : frames) bytes += HostBytes(*frame);
  }
  return bytes;
}

size_t Executor::frame_bytes() const {
  size_t bytes = 0;
  for (const auto& frames : idle_) {
    for (const FrameOwner& frame : frames) {
      bytes += frame->own_bytes;
      for (const BoundSegment& segment : frame->segments) bytes += segment.own_bytes;
    }
  }
  return bytes;
}

size_t Executor::device_bytes() const {
  size_t bytes = 0;
  for (const auto& frames : idle_) {
    for (const FrameOwner& frame : frames) bytes += DeviceBytes(*frame);
  }
  return bytes;
}

}  // namespace msrt
