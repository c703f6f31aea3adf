#include "core/run/session.h"

#include <algorithm>
#include <cstring>

#include "core/run/convert.h"
#include "core/run/device_work.h"

namespace msrt {
namespace {

// Memory that grows to what is asked for and counts against a common cap.
class Budget {
 public:
  Budget(Allocator* allocator, size_t cap) : allocator_(allocator), cap_(cap) {}

  // Makes `block` at least `bytes` large; its contents are lost if it grows.
  Status Ensure(Block* block, size_t bytes, std::string_view what) {
    if (block->data() != nullptr && block->bytes() >= bytes) return OkStatus();
    const size_t others = used_ - block->bytes();
    if (cap_ != 0 && (bytes > cap_ || others > cap_ - bytes)) {
      return LimitExceeded(what, " needs ", bytes, " bytes; with ", others, " bytes in use the session's cap of ", cap_,
                           " bytes would be passed");
    }
    Release(block);
    MSRT_ASSIGN_OR_RETURN(*block, Block::Make(allocator_, bytes, what));
    used_ += block->bytes();
    return OkStatus();
  }
  void Release(Block* block) {
    used_ -= block->bytes();
    block->Reset();
  }

  // The same for a block that others may hold too: it is replaced, never freed under a reader.
  Status Ensure(std::shared_ptr<Block>* block, size_t bytes, std::string_view what) {
    if (*block != nullptr && (*block)->bytes() >= bytes) return OkStatus();
    Release(block);
    auto fresh = std::make_shared<Block>();
    MSRT_RETURN_IF_ERROR(Ensure(fresh.get(), bytes, what));
    *block = std::move(fresh);
    return OkStatus();
  }
  void Release(std::shared_ptr<Block>* block) {
    if (*block != nullptr) used_ -= (*block)->bytes();
    block->reset();
  }

 private:
  Allocator* allocator_;
  size_t cap_;
  size_t used_ = 0;
};

// Memory for kernels while they run. Delegates get a null pointer where there is none; the reason is kept for the caller.
class SessionScratch {
 public:
  explicit SessionScratch(Budget* budget) : budget_(budget) {}
  void* Get(size_t bytes) {
    failure_ = budget_->Ensure(&block_, bytes, "scratch memory");
    return failure_.ok() ? block_.data() : nullptr;
  }
  const Status& failure() const { return failure_; }
  void ForgetFailure() { failure_ = OkStatus(); }
  Block& block() { return block_; }
  const Block& block() const { return block_; }

 private:
  Budget* budget_;
  Block block_;
  Status failure_;
};

struct Port {
  TensorView view;  // null data: not set
  std::shared_ptr<const void> owner;
};

bool Overlap(const TensorView& a, const TensorView& b) {
  if (!a.present() || !b.present()) return false;
  const auto begin = [](const TensorView& v) { return reinterpret_cast<uintptr_t>(v.data); };
  const auto end = [&](const TensorView& v) { return begin(v) + BytesOf(v.dtype, v.elements()); };
  return begin(a) < end(b) && begin(b) < end(a);
}

struct StateValue {
  Type type;
  Block block;
};

}  // namespace

class Session::Impl {
 public:
  Impl(std::shared_ptr<const CompiledModel> model, size_t entry, const SessionOptions& options)
      : model_(std::move(model)),
        entry_(entry),
        options_(options),
        placed_(model_->entries[entry]->current()),
        graph_(*placed_->program->graph),
        budget_(model_->environment->allocator, options.memory_cap_bytes),
        scratch_(&budget_),
        inputs_(graph_.inputs.size()),
        bound_outputs_(graph_.outputs.size()),
        own_outputs_(graph_.outputs.size()),
        outputs_(graph_.outputs.size()),
        states_(model_->module.states.size()),
        pending_(states_.size()),
        written_(states_.size()) {
    devices_.Reset(placed_->program.get());
  }

  Status ResetState(size_t slot) {
    const ConstTensor& initial = model_->module.states[slot].initial;
    return WriteState(slot, {initial.dtype, initial.dims, Layout::kPlain, const_cast<std::byte*>(initial.bytes.data())});
  }

  Status WriteState(size_t slot, const TensorView& data) {
    const StateSlot& declared = model_->module.states[slot];
    const Type given = Type::Tensor(data.dtype, data.dims);
    auto merged = MergeTypes(given, declared.type);
    if (!merged.ok()) return InvalidArgument("state '", declared.name, "': ", merged.status().message());
    MSRT_RETURN_IF_ERROR(StoreState(&states_[slot], given, data.data));
    return OkStatus();
  }

  // What ends with a run, however it ends: with std::bad_alloc too.
  struct RunScope {
    Impl& session;
    bool succeeded = false;
    ~RunScope() {
      // State is committed only by a run that succeeded.
      for (size_t s = 0; s < session.states_.size(); ++s) {
        if (session.written_[s] && succeeded) std::swap(session.states_[s], session.pending_[s]);
        session.written_[s] = false;
      }
      session.has_results_ = succeeded;
      session.busy_ = false;
    }
  };

  Status Run(const RunOptions& options) {
    bool idle = false;
    if (!busy_.compare_exchange_strong(idle, true)) {
      return InvalidArgument("the session is running in another thread; clone it to run at the same time");
    }
    RunScope scope{*this};
    cancelled_ = false;
    for (;;) {
      MSRT_RETURN_IF_ERROR(Use(model_->entries[entry_]->current()));
      failed_delegate_.clear();
      devices_.ForgetFailure();
      Status status = RunLocked(options);
      scope.succeeded = status.ok();
      if (status.ok()) return status;
      std::string failed = FailedDelegate(status);
      if (failed.empty()) failed = failed_delegate_.empty() ? devices_.failed() : failed_delegate_;
      const bool stopped = status.code() == Code::kCancelled || status.code() == Code::kDeadlineExceeded;
      if (failed.empty() || stopped) return status;
      // Nothing of this run has been committed, so it can simply begin again elsewhere.
      std::fill(written_.begin(), written_.end(), 0);
      MSRT_RETURN_IF_ERROR(PlaceWithout(*model_, entry_, placed_, failed, status));
    }
  }

  // Switches to another program of the same entry.
  Status Use(std::shared_ptr<const EntryProgram> placed) {
    if (placed == placed_) return OkStatus();
    binding_.reset();
    request_ = {};
    devices_.Reset(placed->program.get());
    placed_ = std::move(placed);
    return OkStatus();
  }

  Status RunLocked(const RunOptions& options) {
    profile_.clear();
    arena_lower_bound_ = 0;
    MSRT_RETURN_IF_ERROR(BindInputs());
    std::shared_ptr<const Binding> binding = binding_;
    return RunOnTeam(*model_->environment->parallel, [&] { return RunSteps(std::move(binding), options); });
  }

  Status RunSteps(std::shared_ptr<const Binding> binding, const RunOptions& options) {
    Status status;
    try {
      status = RunBindings(std::move(binding), options);
    } catch (...) {
      (void)devices_.Synchronize();
      throw;
    }
    if (status.ok()) return status;
    // What is enqueued still uses memory of the session and of the caller. The first error is the one to tell.
    (void)devices_.Synchronize();
    return status;
  }

  Status RunBindings(std::shared_ptr<const Binding> binding, const RunOptions& options) {
    const Program& program = *placed_->program;
    for (uint32_t depth = 0;; ++depth) {
      if (arenas_.size() <= depth) arenas_.emplace_back();
      MSRT_RETURN_IF_ERROR(budget_.Ensure(&arenas_[depth], binding->arena_bytes, "the arena"));
      MSRT_RETURN_IF_ERROR(devices_.Prepare(*binding, depth));
      arena_lower_bound_ += binding->lower_bound_bytes;
      MSRT_RETURN_IF_ERROR(PlaceOutputs(*binding));
      pointers_.resize(std::max(pointers_.size(), binding->most_views));
      for (const BoundStep& step : binding->steps) MSRT_RETURN_IF_ERROR(RunStep(step, depth, options));
      MSRT_RETURN_IF_ERROR(devices_.Synchronize());
      if (binding->end_step == program.steps.size()) return OkStatus();
      MSRT_ASSIGN_OR_RETURN(binding, Continue(program, *model_->environment->evaluator, binding, depth + 1,
                                              [&](BufferId b, void* to, size_t bytes) { return Read(*binding, depth, b, to, bytes); }));
    }
  }

  // The bytes of a buffer that exists by now, wherever it is.
  Status Read(const Binding& binding, uint32_t depth, BufferId b, void* to, size_t bytes) {
    const void* from = Resolve(binding.places[b], depth);
    const uint16_t device = placed_->program->buffers[b].state.device;
    if (device == 0) {
      std::memcpy(to, from, bytes);
      return OkStatus();
    }
    MSRT_RETURN_IF_ERROR(devices_.CopyToHost(device, to, from, bytes));
    return devices_.Synchronize();
  }

  Status BindInputs() {
    request_.inputs.resize(inputs_.size());
    request_.states.resize(states_.size());
    bool same = binding_ != nullptr;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].view.present()) {
        return InvalidArgument("input ", i, " '", graph_.value(graph_.inputs[i]).name, "' is not set");
      }
      same &= Update(&request_.inputs[i], inputs_[i].view.dtype, inputs_[i].view.dims);
    }
    for (size_t s = 0; s < states_.size(); ++s) same &= Update(&request_.states[s], states_[s].type.dtype, states_[s].type.dims);
    if (same) return OkStatus();
    binding_.reset();
    MSRT_ASSIGN_OR_RETURN(binding_, BindingFor(*model_, *placed_, request_));
    return OkStatus();
  }

  // True if nothing changed.
  static bool Update(Type* type, DType dtype, const Dims& dims) {
    if (type->dtype == dtype && type->dims == dims) return true;
    *type = Type::Tensor(dtype, dims);
    return false;
  }

  Status PlaceOutputs(const Binding& binding) {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Type& type = binding.output_types[i];
      if (!type.concrete()) continue;  // a later binding of this run knows
      const std::string& name = graph_.value(graph_.outputs[i]).name;
      TensorView view{type.dtype, type.dims, Layout::kPlain, nullptr};
      std::shared_ptr<const void> owner;
      const TensorView& bound = bound_outputs_[i].view;
      if (bound.present()) {
        if (bound.dtype != type.dtype || !(bound.dims == type.dims)) {
          return InvalidArgument("output ", i, " '", name, "' is ", type, ", but memory for ", bound.dtype, bound.dims, " is bound to it");
        }
        MSRT_RETURN_IF_ERROR(CheckApart(i));
        view.data = bound.data;
        owner = bound_outputs_[i].owner;
      } else {
        MSRT_RETURN_IF_ERROR(budget_.Ensure(&own_outputs_[i], type.bytes(), StrCat("output '", name, "'")));
        view.data = own_outputs_[i]->data();
        owner = own_outputs_[i];
      }
      outputs_[i] = {view, std::move(owner)};
    }
    return OkStatus();
  }

  // Steps write outputs while inputs and other outputs are still read, so bound memory must be the output's alone.
  Status CheckApart(size_t output) const {
    const TensorView& memory = bound_outputs_[output].view;
    const auto refuse = [&](std::string_view other, size_t index) {
      return InvalidArgument("output ", output, " '", graph_.value(graph_.outputs[output]).name, "' is bound to memory that ", other, " ",
                             index, " is bound to too");
    };
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (Overlap(memory, inputs_[i].view)) return refuse("input", i);
    }
    for (size_t i = 0; i < bound_outputs_.size(); ++i) {
      if (i != output && Overlap(memory, bound_outputs_[i].view)) return refuse("output", i);
    }
    return OkStatus();
  }

  void* Resolve(const Location& place, uint32_t depth) const {
    switch (place.kind) {
      case Location::kNowhere:
        return nullptr;
      case Location::kArena:
        return ArenaOf(place.device, depth) + place.offset;
      case Location::kEarlier:
        return ArenaOf(place.device, place.index) + place.offset;
      case Location::kConstant:
        return const_cast<std::byte*>(place.data);
      case Location::kInput:
        return inputs_[place.index].view.data;
      case Location::kOutput:
        return outputs_[place.index].view.data;
      case Location::kState:
        return (place.offset == 0 ? states_ : pending_)[place.index].block.data();
    }
    return nullptr;
  }

  std::byte* ArenaOf(uint16_t device, uint32_t depth) const { return device == 0 ? arenas_[depth].data() : devices_.arena(device, depth); }

  uint32_t NodeOf(const BoundStep& step) const { return placed_->program->steps[step.step].node; }

  Status RunStep(const BoundStep& step, uint32_t depth, const RunOptions& options) {
    if (cancelled_.load(std::memory_order_relaxed)) return MakeStatus(Code::kCancelled, "the run was cancelled");
    if (options.deadline_nanos != 0 && model_->environment->clock->NowNanos() >= options.deadline_nanos) {
      return MakeStatus(Code::kDeadlineExceeded, "the run passed its deadline before ", Describe(graph_, NodeOf(step)));
    }
    for (size_t i = 0; i < step.places.size(); ++i) pointers_[i] = Resolve(step.places[i], depth);
    for (const EventId& event : step.waits) MSRT_RETURN_IF_ERROR(devices_.Wait(event));
    const int64_t begin = options.profile ? MonotonicNanos() : 0;
    Status status = Execute(step);
    if (options.profile) profile_.push_back({step.step, begin, MonotonicNanos()});
    if (!status.ok()) return std::move(status).Within(Describe(graph_, NodeOf(step)));
    return step.event < 0 ? OkStatus() : devices_.Record({step.device, static_cast<uint32_t>(step.event)});
  }

  Status RunKernel(const BoundStep& step) {
    const Program& program = *placed_->program;
    msrt_run_args args = MSRT_INIT(msrt_run_args);
    args.host = program.host->api();
    args.inputs = pointers_.data();
    args.input_count = step.input_count;
    args.outputs = pointers_.data() + step.input_count;
    args.output_count = step.places.size() - step.input_count;
    scratch_.ForgetFailure();
    const msrt_scratch scratch{&scratch_, [](void* context, size_t bytes) { return static_cast<SessionScratch*>(context)->Get(bytes); }};
    args.scratch = &scratch;
    if (step.device != 0) args.stream = devices_.stream(step.device);
    Status status = step.kernel.Run(args);
    if (status.ok()) return status;
    if (!scratch_.failure().ok()) return scratch_.failure();
    if (MayDoElsewhere(status.code(), step.device != 0)) failed_delegate_ = program.steps[step.step].delegate;
    return status;
  }

  TensorView ViewOf(const BoundStep& step, size_t i) const {
    TensorView view = step.views[i];
    view.data = pointers_[i];
    return view;
  }

  Status Execute(const BoundStep& step) {
    ParallelFor& parallel = *model_->environment->parallel;
    switch (step.kind) {
      case StepKind::kKernel:
        return RunKernel(step);
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
        return step.kind == StepKind::kCopyToDevice ? devices_.CopyToDevice(step.device, pointers_[1], pointers_[0], bytes)
                                                    : devices_.CopyToHost(step.device, pointers_[1], pointers_[0], bytes);
      }
      case StepKind::kView:
        return OkStatus();
      case StepKind::kStateRead: {
        const StateValue& state = (written_[step.slot] ? pending_ : states_)[step.slot];
        const TensorView from{state.type.dtype, state.type.dims, Layout::kPlain, state.block.data()};
        return ConvertLayout(from, ViewOf(step, 0), parallel);
      }
      case StepKind::kStateWrite: {
        const TensorView value = ViewOf(step, 0);
        MSRT_RETURN_IF_ERROR(StoreState(&pending_[step.slot], Type::Tensor(value.dtype, value.dims), value.data));
        written_[step.slot] = true;
        return OkStatus();
      }
    }
    return OkStatus();
  }

  Status StoreState(StateValue* state, const Type& type, const void* data) {
    MSRT_RETURN_IF_ERROR(budget_.Ensure(&state->block, type.bytes(), "state"));
    if (type.bytes() != 0) std::memmove(state->block.data(), data, type.bytes());
    state->type = type;
    return OkStatus();
  }

  void Trim() {
    for (Block& a : arenas_) budget_.Release(&a);
    for (auto& o : own_outputs_) budget_.Release(&o);
    for (Port& o : outputs_) o = {};
    budget_.Release(&scratch_.block());
    devices_.Trim();
    for (StateValue& p : pending_) budget_.Release(&p.block);
    has_results_ = false;
  }

  SessionMemory memory() const {
    SessionMemory m;
    for (const Block& a : arenas_) m.arena_bytes += a.bytes();
    m.arena_lower_bound_bytes = arena_lower_bound_;
    m.scratch_bytes = scratch_.block().bytes();
    m.device_bytes = devices_.bytes();
    for (const auto& o : own_outputs_) m.output_bytes += o == nullptr ? 0 : o->bytes();
    for (const StateValue& s : states_) m.state_bytes += s.block.bytes();
    for (const StateValue& s : pending_) m.state_bytes += s.block.bytes();
    return m;
  }

  const std::shared_ptr<const CompiledModel> model_;
  const size_t entry_;
  const SessionOptions options_;
  std::shared_ptr<const EntryProgram> placed_;
  const Graph& graph_;
  Budget budget_;
  SessionScratch scratch_;
  std::vector<Port> inputs_, bound_outputs_;
  std::vector<std::shared_ptr<Block>> own_outputs_;
  std::vector<Port> outputs_;                 // of the last run: in own or in bound memory
  std::vector<StateValue> states_, pending_;  // pending: written by the run in progress
  std::vector<char> written_;
  std::vector<Block> arenas_;  // one for each binding of a run's chain
  BindRequest request_;
  std::shared_ptr<const Binding> binding_;
  DeviceWork devices_;
  std::string failed_delegate_;  // whose kernel failed in the run in progress
  std::vector<void*> pointers_;  // of the step in progress
  std::vector<StepTime> profile_;
  size_t arena_lower_bound_ = 0;
  bool has_results_ = false;
  std::atomic<bool> busy_{false}, cancelled_{false};
};

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::Create(std::shared_ptr<const CompiledModel> model, size_t entry, const SessionOptions& options) {
  if (entry >= model->entries.size()) return NotFound("entry ", entry, " does not exist; the model has ", model->entries.size());
  std::unique_ptr<Session> session(new Session(std::make_unique<Impl>(std::move(model), entry, options)));
  for (size_t s = 0; s < session->impl_->states_.size(); ++s) MSRT_RETURN_IF_ERROR(session->impl_->ResetState(s));
  return session;
}

Result<std::unique_ptr<Session>> Session::Clone() const {
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<Session> copy, Create(impl_->model_, impl_->entry_, impl_->options_));
  for (size_t s = 0; s < impl_->states_.size(); ++s) {
    MSRT_ASSIGN_OR_RETURN(const TensorView value, State(s));
    MSRT_RETURN_IF_ERROR(copy->WriteState(s, value));
  }
  return copy;
}

const CompiledModel& Session::model() const { return *impl_->model_; }
const Program& Session::program() const { return *impl_->placed_->program; }
const Graph& Session::graph() const { return impl_->graph_; }

Status Session::SetInput(size_t index, const TensorView& data, std::shared_ptr<const void> owner) {
  if (index >= impl_->inputs_.size()) return NotFound("input ", index, " does not exist; there are ", impl_->inputs_.size());
  impl_->inputs_[index] = {data, std::move(owner)};
  return OkStatus();
}

Status Session::SetOutput(size_t index, const TensorView& memory, std::shared_ptr<const void> owner) {
  if (index >= impl_->bound_outputs_.size()) return NotFound("output ", index, " does not exist; there are ", impl_->bound_outputs_.size());
  impl_->bound_outputs_[index] = {memory, std::move(owner)};
  impl_->outputs_[index] = {};
  return OkStatus();
}

Status Session::Run(const RunOptions& options) { return impl_->Run(options); }
void Session::Cancel() { impl_->cancelled_ = true; }

Result<TensorView> Session::Output(size_t index) const {
  if (index >= impl_->outputs_.size()) return NotFound("output ", index, " does not exist; there are ", impl_->outputs_.size());
  if (!impl_->has_results_) return InvalidArgument("there is no result: the session has not run, or its last run failed");
  if (!impl_->outputs_[index].view.present()) return InvalidArgument("output ", index, " was bound anew after the last run; run again");
  return impl_->outputs_[index].view;
}

std::shared_ptr<const void> Session::OutputOwner(size_t index) const {
  return index < impl_->outputs_.size() ? impl_->outputs_[index].owner : nullptr;
}

Result<TensorView> Session::State(size_t slot) const {
  if (slot >= impl_->states_.size()) return NotFound("state ", slot, " does not exist; there are ", impl_->states_.size());
  const StateValue& s = impl_->states_[slot];
  return TensorView{s.type.dtype, s.type.dims, Layout::kPlain, s.block.data()};
}

Status Session::WriteState(size_t slot, const TensorView& data) {
  if (slot >= impl_->states_.size()) return NotFound("state ", slot, " does not exist; there are ", impl_->states_.size());
  return impl_->WriteState(slot, data);
}

Status Session::ResetState(size_t slot) {
  if (slot >= impl_->states_.size()) return NotFound("state ", slot, " does not exist; there are ", impl_->states_.size());
  return impl_->ResetState(slot);
}

void Session::Trim() { impl_->Trim(); }
SessionMemory Session::memory() const { return impl_->memory(); }
const std::vector<StepTime>& Session::profile() const { return impl_->profile_; }
std::shared_ptr<const Binding> Session::binding() const { return impl_->binding_; }

}  // namespace msrt
