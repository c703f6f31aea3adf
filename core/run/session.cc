#include "core/run/session.h"

#include <algorithm>

#include "core/compile/failover.h"
#include "core/run/executor.h"

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
  Impl(std::shared_ptr<const CompiledModel> model, size_t entry, const SessionOptions& options)
      : model_(std::move(model)),
        entry_(entry),
        options_(options),
        placed_(model_->entries[entry]->current()),
        graph_(*placed_->program->graph),
        budget_(model_->environment->allocator, options.memory_cap_bytes),
        states_(model_->module, &budget_),
        executor_(*model_, &budget_, &states_, &cancelled_, options.stream_priority),
        inputs_(graph_.inputs.size()),
        outputs_(graph_.outputs.size()) {}

  // Cleans up after a run, however it ends: with std::bad_alloc too.
  struct RunScope {
    Impl& session;
    bool succeeded = false;
    ~RunScope() {
      session.states_.Finish(succeeded);
      session.has_results_ = succeeded;
      session.busy_ = false;
    }
  };

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
    for (;;) {
      placed_ = model_->entries[entry_]->current();
      Status status = executor_.Run(model_->module.entries[entry_], inputs_, outputs_, options);
      scope.succeeded = status.ok();
      if (status.ok()) return status;
      // The frames of a recursion that went too far would leave no room for the next run.
      if (status.code() == Code::kLimitExceeded || status.code() == Code::kOutOfMemory)
        executor_.Trim();
      const bool stopped =
          status.code() == Code::kCancelled || status.code() == Code::kDeadlineExceeded;
      const RunFailure& failure = executor_.failure();
      if (failure.delegate.empty() || stopped) return status;
      // Nothing of this run has been committed, so it can start again on another delegate.
      states_.Finish(false);
      MSRT_RETURN_IF_ERROR(
          RecompileWithout(*model_, failure.graph, failure.placed, failure.delegate, status));
    }
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
      if (o.block == nullptr) continue;
      const auto in_it = [&](const RunValue& input) {
        return InMemory(o.block->data(), o.block->bytes(), input.tensor);
      };
      if (std::any_of(inputs_.begin(), inputs_.end(), in_it)) Release(&o, &budget_);
    }
    for (ResultCell& o : outputs_) {
      if (o.device_block == nullptr) continue;
      const auto in_it = [&](const RunValue& input) {
        return InMemory(o.device_block->data(), o.device_block->bytes(), input.tensor);
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
    m.state_bytes = states_.bytes();
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
  std::shared_ptr<const EntryProgram> placed_;
  const Graph& graph_;
  Budget budget_;
  StateStore states_;
  std::atomic<bool> busy_{false}, cancelled_{false};
  Executor executor_;
  std::vector<RunValue> inputs_;
  std::vector<ResultCell> outputs_;
  bool has_results_ = false;
};

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::Create(std::shared_ptr<const CompiledModel> model,
                                                 size_t entry, const SessionOptions& options) {
  if (entry >= model->entries.size())
    return NotFound("entry ", entry, " does not exist; the model has ", model->entries.size());
  std::unique_ptr<Session> session(
      new Session(std::make_unique<Impl>(std::move(model), entry, options)));
  for (size_t s = 0; s < session->impl_->states_.count(); ++s)
    MSRT_RETURN_IF_ERROR(session->impl_->states_.Reset(s));
  return session;
}

Result<std::unique_ptr<Session>> Session::Clone() const {
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<Session> copy,
                        Create(impl_->model_, impl_->entry_, impl_->options_));
  for (size_t s = 0; s < impl_->states_.count(); ++s) {
    MSRT_ASSIGN_OR_RETURN(const TensorView value, State(s));
    MSRT_RETURN_IF_ERROR(copy->WriteState(s, value));
  }
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
  if (slot >= impl_->states_.count())
    return NotFound("state ", slot, " does not exist; there are ", impl_->states_.count());
  return impl_->states_.Committed(slot);
}

Status Session::WriteState(size_t slot, const TensorView& data) {
  if (slot >= impl_->states_.count())
    return NotFound("state ", slot, " does not exist; there are ", impl_->states_.count());
  return impl_->states_.Write(slot, data);
}

Status Session::ResetState(size_t slot) {
  if (slot >= impl_->states_.count())
    return NotFound("state ", slot, " does not exist; there are ", impl_->states_.count());
  return impl_->states_.Reset(slot);
}

void Session::Trim() { impl_->Trim(); }
SessionMemory Session::memory() const { return impl_->memory(); }
const RunProfile& Session::profile() const { return impl_->executor_.profile(); }
std::shared_ptr<const Binding> Session::binding() const { return impl_->executor_.binding(); }

}  // namespace msrt
