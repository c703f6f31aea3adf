#include "core/run/session.h"

#include <algorithm>
#include <functional>

#include "core/compile/failover.h"
#include "core/run/executor.h"
#include "core/run/rank_team.h"

namespace msrt {
namespace {

bool InMemory(const void* data, size_t bytes, const TensorView& tensor) {
  if (data == nullptr || !tensor.present()) return false;
  const auto begin = reinterpret_cast<uintptr_t>(data),
             other = reinterpret_cast<uintptr_t>(tensor.data);
  return other < begin + bytes && begin < other + BytesOf(tensor.dtype, tensor.elements());
}

bool Overlap(const TensorView& a, const TensorView& b) {
  return InMemory(a.data, BytesOf(a.dtype, a.elements()), b);
}

}  // namespace

class Session::Impl {
 public:
  Impl(std::shared_ptr<const CompiledModel> model, size_t entry, const SessionOptions& options,
       std::shared_ptr<SharedState> shared)
      : model_(std::move(model)),
        entry_(entry),
        options_(options),
        placed_(model_->entries[entry]->current()),
        graph_(*placed_->program->graph),
        budget_(model_->environment->allocator, options.memory_cap_bytes),
        states_(*model_, budget_, std::move(shared)),
        executor_(*model_, &budget_, &states_, &cancelled_, options.stream_priority,
                  options.communicator, options.background_communicator),
        inputs_(graph_.inputs.size()),
        outputs_(graph_.outputs.size()) {
    const uint32_t graph = model_->module.entries[entry];
    for (size_t s = 0; s < states_.count(); ++s) {
      if (!IsShareable(model_->module.states[s].role)) continue;
      reads_shared_ |= model_->state_use.MayRead(graph, s);
      writes_shared_ |= model_->state_use.MayWrite(graph, s);
    }
  }

  // Cleans up after a run, however it ends: with std::bad_alloc too.
  struct RunScope {
    Impl& session;
    bool succeeded = false;
    ~RunScope() {
      session.has_results_ = succeeded;
      session.busy_ = false;
    }
  };

  // The part of a run that uses state.
  struct StateScope {
    Impl& session;
    StateLock::Hold hold;
    bool ended = false;
    // Returns whether the run leaves a mixture.
    bool End(bool succeeded) {
      ended = true;
      return session.states_.Finish(succeeded, session.graph_number());
    }
    ~StateScope() {
      if (!ended) (void)End(false);
    }
  };

  uint32_t graph_number() const { return model_->module.entries[entry_]; }

  Result<StateLock::Hold> LockState(bool read, bool write, const WaitLimit& limit) const {
    if (!read && !write) return StateLock::Hold();
    StateLock& lock = states_.shared()->lock;
    MSRT_RETURN_IF_ERROR(lock.Enter(write, limit));
    return StateLock::Hold(&lock, write);
  }
  // For one slot, between runs.
  Result<StateLock::Hold> LockSlot(size_t slot, bool write) const {
    if (slot >= states_.count())
      return NotFound("state ", slot, " does not exist; there are ", states_.count());
    const bool shared = IsShareable(model_->module.states[slot].role);
    return LockState(shared, shared && write, {});
  }

  Status Run(const RunOptions& options) {
    bool idle = false;
    if (!busy_.compare_exchange_strong(idle, true)) {
      return InvalidArgument(
          "the session is running in another thread; clone it to run at the same time");
    }
    RunScope scope{*this};
    cancelled_ = false;
    for (size_t i = 0; i < outputs_.size(); ++i) MSRT_RETURN_IF_ERROR(CheckApart(i));
    ReleaseOutputsUsedAsInputs();
    const WaitLimit limit = LimitOf(options, model_->environment->clock, &cancelled_);
    MSRT_ASSIGN_OR_RETURN(StateLock::Hold hold, LockState(reads_shared_, writes_shared_, limit));
    StateScope state{*this, std::move(hold)};
    if (reads_shared_ || writes_shared_) MSRT_RETURN_IF_ERROR(states_.CheckNotMixed());
    for (;; state.ended = false) {
      const ModelEntry& entry = *model_->entries[entry_];
      if (!entry.IsCurrent(placed_)) placed_ = entry.current();
      Status status = executor_.Run(graph_number(), inputs_, outputs_, options);
      scope.succeeded = status.ok();
      if (state.End(status.ok())) return WithMixture(std::move(status));
      if (status.ok()) return status;
      // The frames of a recursion that went too far would leave no room for the next run.
      if (status.code() == Code::kLimitExceeded || status.code() == Code::kOutOfMemory)
        executor_.Trim();
      const bool stopped =
          status.code() == Code::kCancelled || status.code() == Code::kDeadlineExceeded;
      const RunFailure& failure = executor_.failure();
      if (failure.delegate.empty() || stopped) return status;
      // Other ranks have gone on: they would not repeat their part.
      if (options_.communicator != nullptr) return status;
      // Nothing of this run has been committed, so it can start again on another delegate.
      MSRT_RETURN_IF_ERROR(
          RecompileWithout(*model_, failure.graph, failure.placed, failure.delegate, status));
    }
  }

  static Status WithMixture(Status status) {
    Status mixture = MakeStatus(
        status.code(), status.message(),
        "; the run had begun to update parameters, which may now be a mixture of two steps: write "
        "or reset them before the next run");
    for (const auto& [key, value] : status.details()) mixture = std::move(mixture).With(key, value);
    return mixture;
  }

  // Steps write outputs while inputs and other outputs are still read, so bound memory must belong
  // to one output alone.
  Status CheckApart(size_t output) const {
    const TensorView& memory = outputs_[output].bound;
    if (!memory.present()) return OkStatus();
    const auto refuse = [&](std::string_view other, size_t index) {
      return InvalidArgument("output ", output, " '", graph_.value(graph_.outputs[output]).name,
                             "' is bound to memory that is also bound to ", other, " ", index);
    };
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (Overlap(memory, inputs_[i].tensor)) return refuse("input", i);
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (i != output && Overlap(memory, outputs_[i].bound)) return refuse("output", i);
    }
    return OkStatus();
  }

  // A result that is now an input (the model is fed its own output) keeps its memory; the next
  // result gets new memory.
  void ReleaseOutputsUsedAsInputs() {
    for (ResultCell& o : outputs_) {
      const auto in_it = [&](const RunValue& input) {
        return (o.block != nullptr && InMemory(o.block->data(), o.block->bytes(), input.tensor)) ||
               (o.device_block != nullptr &&
                InMemory(o.device_block->data(), o.device_block->bytes(), input.tensor));
      };
      if (std::any_of(inputs_.begin(), inputs_.end(), in_it)) Release(&o, &budget_);
    }
  }

  void Trim() {
    executor_.Trim();
    for (ResultCell& o : outputs_) ReleaseOutput(&o);
    states_.Trim();
    has_results_ = false;
  }

  SessionMemory memory() const {
    SessionMemory m;
    m.arena_bytes = executor_.frames().arena_bytes();
    m.frame_bytes = executor_.frames().frame_bytes();
    m.arena_lower_bound_bytes = executor_.arena_lower_bound();
    m.scratch_bytes = executor_.scratch_bytes();
    m.device_bytes = executor_.frames().device_bytes();
    for (const ResultCell& o : outputs_) {
      m.output_bytes += o.block == nullptr ? 0 : o.block->bytes();
      m.device_bytes += o.device_block == nullptr ? 0 : o.device_block->bytes();
    }
    const auto hold = LockState(true, false, {});
    if (!hold.ok()) return m;  // called from inside a run that writes the state
    m.state_bytes = states_.bytes();
    m.packed_state_bytes = states_.packed_bytes();
    return m;
  }

  Result<const RunValue*> ResultOf(size_t index) const {
    if (index >= outputs_.size())
      return NotFound("output ", index, " does not exist; there are ", outputs_.size());
    if (!has_results_)
      return InvalidArgument("there is no result: the session has not run, or its last run failed");
    if (!outputs_[index].value.present())
      return InvalidArgument("output ", index,
                             " was taken or bound anew after the last run; run again");
    return &outputs_[index].value;
  }

  void ReleaseOutput(ResultCell* cell) {
    budget_.Release(&cell->block);
    cell->device_block.reset();
    cell->value = {};
  }

  const std::shared_ptr<const CompiledModel> model_;
  const size_t entry_;
  const SessionOptions options_;
  RankTeam team_;
  std::shared_ptr<const EntryProgram> placed_;
  const Graph& graph_;
  Budget budget_;
  StateStore states_;
  std::atomic<bool> busy_{false}, cancelled_{false};
  Executor executor_;
  std::vector<RunValue> inputs_;
  std::vector<ResultCell> outputs_;
  bool has_results_ = false;
  bool reads_shared_ = false, writes_shared_ = false;  // what a run may do to shared slots
};

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::Create(std::shared_ptr<const CompiledModel> model,
                                                 size_t entry, const SessionOptions& options,
                                                 const Session* share) {
  if (entry >= model->entries.size())
    return NotFound("entry ", entry, " does not exist; the model has ", model->entries.size());
  if (share != nullptr && share->impl_->model_ != model)
    return InvalidArgument("only sessions of the same model can share state");
  RankTeam team;
  if (options.communicator != nullptr) {
    MSRT_ASSIGN_OR_RETURN(team, RankTeam::Join(model->parallel, *options.communicator));
  }
  std::shared_ptr<SharedState> shared = share == nullptr ? nullptr : share->impl_->states_.shared();
  auto impl = std::make_unique<Impl>(std::move(model), entry, options, std::move(shared));
  impl->team_ = std::move(team);
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

Result<std::unique_ptr<Session>> Session::Clone() const {
  if (impl_->options_.communicator != nullptr)
    return InvalidArgument(
        "a session with a communicator cannot be cloned: the copy needs its own");
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<Session> copy,
                        Create(impl_->model_, impl_->entry_, impl_->options_));
  MSRT_RETURN_IF_ERROR(copy->CopyState(*this));
  return copy;
}

const CompiledModel& Session::model() const { return *impl_->model_; }
const Program& Session::program() const { return *impl_->placed_->program; }
const Graph& Session::graph() const { return impl_->graph_; }

Status Session::SetInput(size_t index, const TensorView& data, std::shared_ptr<const void> owner) {
  return SetInput(index, RunValue::Of(data, std::move(owner)));
}

Status Session::SetInput(size_t index, RunValue value) {
  if (index >= impl_->inputs_.size())
    return NotFound("input ", index, " does not exist; there are ", impl_->inputs_.size());
  impl_->inputs_[index] = std::move(value);
  return OkStatus();
}

Status Session::SetOutput(size_t index, const TensorView& memory, std::shared_ptr<const void> owner,
                          const Device* device) {
  if (index >= impl_->outputs_.size())
    return NotFound("output ", index, " does not exist; there are ", impl_->outputs_.size());
  ResultCell& cell = impl_->outputs_[index];
  cell.bound = memory;
  cell.bound_device = device;
  cell.bound_owner = std::move(owner);
  cell.value = {};
  return OkStatus();
}

Status Session::Run(const RunOptions& options) { return impl_->Run(options); }
void Session::Cancel() {
  impl_->cancelled_ = true;
  impl_->model_->parallel->WakeWaiting();
  impl_->states_.shared()->lock.Wake();
}

Result<TensorView> Session::Output(size_t index) const {
  MSRT_ASSIGN_OR_RETURN(const RunValue* value, impl_->ResultOf(index));
  if (value->kind != TypeKind::kTensor)
    return InvalidArgument("output ", index, " is a list, not a tensor");
  return value->tensor;
}

Result<RunValue> Session::OutputValue(size_t index) const {
  MSRT_ASSIGN_OR_RETURN(const RunValue* value, impl_->ResultOf(index));
  return *value;
}

std::shared_ptr<const void> Session::OutputOwner(size_t index) const {
  return index < impl_->outputs_.size() ? impl_->outputs_[index].value.owner : nullptr;
}

void Session::ReleaseOutput(size_t index) {
  if (index < impl_->outputs_.size()) impl_->ReleaseOutput(&impl_->outputs_[index]);
}

Result<TensorView> Session::State(size_t slot) const {
  MSRT_ASSIGN_OR_RETURN(const StateLock::Hold hold, impl_->LockSlot(slot, false));
  return impl_->states_.Committed(slot);
}

Status Session::ReadState(size_t slot, FunctionRef<Status(const TensorView&)> read) const {
  MSRT_ASSIGN_OR_RETURN(const StateLock::Hold hold, impl_->LockSlot(slot, false));
  MSRT_ASSIGN_OR_RETURN(const TensorView value, impl_->states_.Committed(slot));
  return read(value);
}

Status Session::WriteState(size_t slot, const TensorView& data) {
  MSRT_ASSIGN_OR_RETURN(const StateLock::Hold hold, impl_->LockSlot(slot, true));
  return impl_->states_.Write(slot, data);
}

Status Session::ResetState(size_t slot) {
  MSRT_ASSIGN_OR_RETURN(const StateLock::Hold hold, impl_->LockSlot(slot, true));
  impl_->states_.Reset(slot);
  return OkStatus();
}

Status Session::CopyState(const Session& from) {
  if (from.impl_->model_ != impl_->model_)
    return InvalidArgument("only state of a session of the same model can be copied");
  if (&from == this) return OkStatus();
  // Two sessions that copy from each other at the same time lock in the same order.
  const Impl &to = *impl_, &source = *from.impl_;
  const bool same = to.states_.shared() == source.states_.shared();
  const bool first = std::less<>()(to.states_.shared().get(), source.states_.shared().get());
  MSRT_ASSIGN_OR_RETURN(const StateLock::Hold one,
                        (first || same ? to : source).LockState(true, first || same, {}));
  MSRT_ASSIGN_OR_RETURN(const StateLock::Hold two,
                        (first ? source : to).LockState(!same, !same && !first, {}));
  return impl_->states_.CopyFrom(from.impl_->states_);
}

void Session::Trim() { impl_->Trim(); }
SessionMemory Session::memory() const { return impl_->memory(); }
const RunProfile& Session::profile() const { return impl_->executor_.profile(); }
const ExchangeTotals& Session::exchanges() const { return impl_->executor_.exchanges(); }
std::shared_ptr<const Binding> Session::binding() const { return impl_->executor_.binding(); }

}  // namespace msrt
