#include "core/run/executor.h"

#include "core/comm/communicator.h"

namespace msrt {
namespace {

// Maximum number of frames that an error names, innermost first.
constexpr size_t kNamedFrames = 4;

// Passes lists and functions on to the caller; tensors are already where the caller wants them.
void FinishOutputs(Frame* frame) {
  const Program& program = frame->program();
  const Graph& graph = frame->graph_of();
  for (size_t i = 0; i < frame->outputs.size(); ++i) {
    if (graph.value(graph.outputs[i]).type.is_tensor()) continue;
    frame->outputs[i]->value =
        frame->held[static_cast<size_t>(program.buffers[program.output_buffers[i]].held)].value;
  }
}

}  // namespace

// Returns all frames when a run ends, however it ends. Synchronizes first: work enqueued on devices
// still uses memory of the session and of the application.
class Executor::Unwind {
 public:
  explicit Unwind(Executor* executor) : executor_(*executor) {}
  ~Unwind() {
    if (!ended_) AbortAfterException();
    (void)executor_.Synchronize();
    while (!executor_.frames_.empty()) executor_.frames_.Pop();
  }
  // Not called if an exception ends the run.
  Status End(Status status) {
    ended_ = true;
    if (!status.ok()) executor_.AbortRanks(status);
    return status;
  }

 private:
  void AbortAfterException() noexcept {
    if (executor_.context_.communicator == nullptr) return;
    try {
      executor_.AbortRanks(MakeStatus(Code::kOutOfMemory, "a rank ran out of memory"));
    } catch (const std::bad_alloc&) {
      // The peers hear of it when this rank leaves.
    }
  }

  bool ended_ = false;
  Executor& executor_;
};

void Executor::BeginRun(const RunOptions& options) {
  frames_.BeginRun();
  context_.options = options;
  context_.failure = {};
  context_.profile = {};
  context_.exchanges = {};
  context_.arena_lower_bound = 0;
  context_.reads_caller = false;
  if (options.profile) context_.profile.begin_nanos = MonotonicNanos();
}

Status Executor::Run(uint32_t graph, std::span<const RunValue> inputs,
                     std::span<ResultCell> outputs, const RunOptions& options) {
  BeginRun(options);
  Unwind unwind(this);
  targets_.clear();
  for (ResultCell& cell : outputs) targets_.push_back(&cell);
  Status status = calls_.Call(graph, inputs, targets_, /*stable_from=*/0);
  if (status.ok()) {
    if (binding_ != frames_[0].segments[0].binding) {
      binding_.reset();  // before its program
      binding_placed_ = frames_[0].placed;
      binding_ = frames_[0].segments[0].binding;
    }
    if (options.profile) context_.profile.placed = frames_[0].placed;
    status = OnTeam([&] { return Loop(); });
    // Reports failures of work that no step waited for.
    if (status.ok()) status = Synchronize();
  }
  if (options.profile) context_.profile.end_nanos = MonotonicNanos();
  status = unwind.End(std::move(status));
  if (status.ok()) return status;
  RecordFailure(status);
  return NameFrames(std::move(status));
}

Status Executor::RunPiece(uint32_t graph, std::shared_ptr<const EntryProgram> placed,
                          std::shared_ptr<const Binding> binding, std::span<const RunValue> inputs,
                          std::span<ResultCell> outputs, const RunOptions& options) {
  BeginRun(options);
  Unwind unwind(this);
  (void)unwind.End(OkStatus());  // pieces do not communicate
  MSRT_ASSIGN_OR_RETURN(Frame* const frame, frames_.Push(graph));
  if (frame->placed != placed)
    return MakeStatus(Code::kDelegate, "the program was replaced while a piece of it was bound");
  if (frame->segments.empty()) frame->segments.emplace_back();
  frame->stable_from = 0;
  frame->inputs.assign(inputs.begin(), inputs.end());
  frame->outputs.clear();
  for (ResultCell& cell : outputs) frame->outputs.push_back(&cell);
  frame->segments[0].binding = std::move(binding);
  Status status = OnTeam([&] { return steps_.RunSegment(frame); });
  if (status.ok()) status = Synchronize();
  if (!status.ok()) RecordFailure(status);
  // The next run of the whole graph must not find the binding or the inputs of a piece.
  frame->segments[0].binding.reset();
  frame->request = {};
  frame->inputs.assign(frame->graph_of().inputs.size(), {});
  return status;
}

// From the innermost frame outwards, but not a hundred thousand times.
Status Executor::NameFrames(Status status) const {
  for (size_t i = frames_.size(), named = 0; i-- > 1 && named < kNamedFrames; ++named) {
    const Frame& caller = frames_[i - 1];
    const size_t at = caller.segments[caller.depth].binding->end_step;
    status = std::move(status).Within(StrCat(Describe(caller.program(), caller.program().steps[at]),
                                             " in graph '", frames_[i].graph_of().name, "'"));
  }
  return status;
}

void Executor::AbortRanks(const Status& status) {
  for (Communicator* c : {context_.communicator, context_.background}) {
    if (c != nullptr) c->Abort(status);
  }
}

Status Executor::Synchronize() {
  Status threads = thread_.Synchronize();
  Status background = background_.Synchronize();
  if (threads.ok()) threads = std::move(background);
  Status devices = queues_.Synchronize();
  return threads.ok() ? devices : threads;
}

// Work in progress on devices may have failed too: its failure shows when it ends.
void Executor::RecordFailure(const Status& status) {
  (void)Synchronize();
  RunFailure& failure = context_.failure;
  const std::string binder = FailedDelegateName(status);
  if (!binder.empty()) failure = {binder, 0, nullptr};
  if (failure.placed != nullptr || frames_.empty()) return;
  failure.graph = frames_.last().graph;
  failure.placed = frames_.last().placed;
}

// Runs of one runtime take turns; cancellation and deadline also apply while this one waits.
Status Executor::OnTeam(FunctionRef<Status()> work) {
  const WaitLimit limit =
      LimitOf(context_.options, context_.model.environment->clock, &context_.cancelled);
  Status status;
  if (context_.model.parallel->TryOnTeam([&] { status = work(); }, limit)) return status;
  if (context_.cancelled.load()) return MakeStatus(Code::kCancelled, "the run was cancelled");
  return MakeStatus(Code::kDeadlineExceeded,
                    "the run passed its deadline while it waited for other runs of the runtime");
}

Status Executor::Loop() {
  for (;;) {
    Frame* frame = &frames_.last();
    MSRT_RETURN_IF_ERROR(steps_.RunSegment(frame));
    bool done = true;
    if (frame->segment().binding->end_step != frame->program().steps.size()) {
      if (frame->program().steps[frame->segment().binding->end_step].kind == StepKind::kControl) {
        BeginRecord(frame);
        MSRT_RETURN_IF_ERROR(FetchInputs(frame));
        MSRT_ASSIGN_OR_RETURN(done, control_.Begin(frame));
      }
    } else {
      FinishOutputs(frame);
      if (frames_.size() == 1) MSRT_RETURN_IF_ERROR(DeliverBound(frame));
      frames_.Pop();
      if (frames_.empty()) return OkStatus();
      frame = &frames_.last();
      MSRT_ASSIGN_OR_RETURN(done, control_.Resume(frame));
    }
    if (!done) continue;
    EndRecord(frame);
    MSRT_RETURN_IF_ERROR(segments_.BindNext(frame));
  }
}

// Values of slots that a control step reads, if they are only on a device.
Status Executor::FetchInputs(Frame* frame) {
  if (!context_.states.AnyOnDevice()) return OkStatus();
  const Binding& binding = *frame->segment().binding;
  for (const BufferId b : frame->program().steps[binding.end_step].inputs) {
    if (b != kNoBuffer && binding.locations[b].kind == Location::kState)
      MSRT_RETURN_IF_ERROR(values_.FetchState(binding.locations[b].index));
  }
  return OkStatus();
}

// Results of the run that are bound to memory where the program does not make them.
Status Executor::DeliverBound(Frame* frame) {
  for (ResultCell* cell : frame->outputs) {
    if (cell->bound.present()) MSRT_RETURN_IF_ERROR(values_.DeliverBound(frame, cell));
  }
  return OkStatus();
}

void Executor::BeginRecord(Frame* frame) {
  if (!context_.options.profile) return;
  RunProfile& profile = context_.profile;
  const auto step = static_cast<uint32_t>(frame->segment().binding->end_step);
  const int64_t now = MonotonicNanos();
  if (!frame->program().steps[step].tail) frame->profiled = profile.steps.size();
  profile.steps.push_back({step, now, now, frame->placed, nullptr});
}

void Executor::EndRecord(Frame* frame) {
  if (frame->profiled == Frame::kNotProfiled) return;
  context_.profile.steps[frame->profiled].end_nanos = MonotonicNanos();
  frame->profiled = Frame::kNotProfiled;
}

void Executor::Trim() {
  frames_.Trim();
  segments_.Trim();
  steps_.Trim();
  queues_.Trim();
}

}  // namespace msrt
