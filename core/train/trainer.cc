#include "core/train/trainer.h"

#include <atomic>
#include <charconv>
#include <cmath>
#include <cstring>

#include "core/graph/constants.h"
#include "core/train/inference_module.h"
#include "core/train/training_module.h"

namespace msrt {
namespace {

Result<ConstTensor> CopyOf(const TensorView& view) {
  MSRT_ASSIGN_OR_RETURN(NewConstant made, MakeConstant(view.dtype, view.dims));
  if (!made.bytes.empty()) std::memcpy(made.bytes.data(), view.data, made.bytes.size());
  return std::move(made.tensor);
}

double NumberOf(const TensorView& view) {
  if (view.dtype == DType::kF64) return *view.As<double>();
  if (view.dtype == DType::kF32) return static_cast<double>(*view.As<float>());
  if (view.dtype == DType::kI64) return static_cast<double>(*view.As<int64_t>());
  return *view.As<uint8_t>() != 0 ? 1 : 0;
}

// A number as a tensor of rank 0 of f32 or f64.
struct Scalar {
  float single = 0;
  double number = 0;

  TensorView ViewAs(DType dtype, double value) {
    number = value;
    single = static_cast<float>(value);
    return {dtype, {}, Layout::kPlain,
            dtype == DType::kF64 ? static_cast<void*>(&number) : static_cast<void*>(&single)};
  }
};

// A session of one entry, and where its results are.
struct EntrySession {
  std::unique_ptr<Session> session;
  int loss = -1, correct = -1, norm = -1, skipped = -1;  // outputs; -1: there is none

  void FindOutputs() {
    const Graph& graph = session->graph();
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      const std::string& name = graph.value(graph.outputs[i]).name;
      const int index = static_cast<int>(i);
      if (name == "loss") loss = index;
      if (name == "correct") correct = index;
      if (name == "gradient_norm") norm = index;
      if (name == "skipped") skipped = index;
    }
  }
  Result<double> Number(int output) const {
    MSRT_ASSIGN_OR_RETURN(const TensorView view, session->Output(static_cast<size_t>(output)));
    return NumberOf(view);
  }
};

}  // namespace

struct Trainer::Impl {
  Module module;
  TrainerOptions options;
  std::shared_ptr<const CompiledModel> model;
  // The others share the state of `train`, and are made when they are first used.
  EntrySession train, accumulate, test, eval;
  Schedule schedule;
  int64_t accumulation = 1, micro_batches = 0, steps = 0;
  Scalar rate;
  std::atomic<Session*> running{nullptr};  // for Cancel

  Status Run(Session* session, const RunOptions& run) {
    running = session;
    Status status = session->Run(run);
    running = nullptr;
    return status;
  }

  Status Open(std::string_view name, EntrySession* entry) const {
    if (entry->session != nullptr) return OkStatus();
    MSRT_ASSIGN_OR_RETURN(const size_t index, FindEntry(module, name));
    MSRT_ASSIGN_OR_RETURN(
        entry->session,
        Session::Create(model, index, options.session, train.session.get()));
    entry->FindOutputs();
    return OkStatus();
  }

  // Sets the inputs from the first on.
  static Status SetInputs(const std::vector<ConstTensor>& tensors, size_t expected,
                          std::string_view entry, Session* session) {
    if (tensors.size() != expected) {
      return InvalidArgument("a batch for entry '", entry, "' has ", tensors.size(),
                             " tensors, must have ", expected);
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
      const ConstTensor& t = tensors[i];
      const TensorView view{t.dtype, t.dims, Layout::kPlain,
                            const_cast<std::byte*>(t.bytes.data())};
      MSRT_RETURN_IF_ERROR(session->SetInput(i, view, t.owner));
    }
    return OkStatus();
  }

  Result<size_t> SlotOf(const std::string& name) const {
    for (size_t i = 0; i < model->module.states.size(); ++i) {
      if (model->module.states[i].name == name) return i;
    }
    return NotFound("model '", module.name, "' has no state slot '", name, "'");
  }

  Result<StepResult> Results(const EntrySession& entry) const {
    StepResult result;
    MSRT_ASSIGN_OR_RETURN(result.loss, entry.Number(entry.loss));
    if (entry.correct >= 0) {
      MSRT_ASSIGN_OR_RETURN(const double correct, entry.Number(entry.correct));
      result.correct = static_cast<int64_t>(correct);
    }
    if (entry.norm >= 0) {
      MSRT_ASSIGN_OR_RETURN(result.gradient_norm, entry.Number(entry.norm));
    }
    if (entry.skipped >= 0) {
      MSRT_ASSIGN_OR_RETURN(const double skipped, entry.Number(entry.skipped));
      result.skipped = skipped != 0;
    }
    return result;
  }

  Status CheckRestorable(const Checkpoint& checkpoint) const;
};

// Nothing is written before everything fits.
Status Trainer::Impl::CheckRestorable(const Checkpoint& checkpoint) const {
  const std::string_view name = MetadataOf(module, kTrainingKey);
  if (checkpoint.model != name) {
    return InvalidArgument("the checkpoint is of model '", checkpoint.model, "', not of '", name,
                           "'");
  }
  const std::vector<StateSlot>& states = model->module.states;
  std::vector<bool> found(states.size());
  for (const CheckpointTensor& tensor : checkpoint.tensors) {
    auto slot = SlotOf(tensor.name);
    if (!slot.ok())
      return InvalidArgument("the checkpoint has '", tensor.name, "', which model '", name,
                             "' with this optimizer does not have");
    auto merged = MergeTypes(states[*slot].type, tensor.data.type());
    if (!merged.ok()) {
      return InvalidArgument("'", tensor.name, "' is ", tensor.data.type(),
                             " in the checkpoint, ", states[*slot].type, " in model '", name, "'");
    }
    found[*slot] = true;
  }
  for (size_t i = 0; i < states.size(); ++i) {
    if (!found[i] && states[i].role != StateRole::kCache) {
      return InvalidArgument("the checkpoint has no '", states[i].name, "', which model '", name,
                             "' with this optimizer needs");
    }
  }
  return checkpoint.schedule.Check();
}

Trainer::Trainer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trainer::~Trainer() = default;

Result<std::unique_ptr<Trainer>> Trainer::Create(std::shared_ptr<const Environment> environment,
                                                 Module module, const TrainerOptions& options) {
  MSRT_RETURN_IF_ERROR(options.schedule.Check());
  if (MetadataOf(module, kTrainingKey).empty())
    return InvalidArgument("model '", module.name,
                           "' is not in its training form; call MakeTrainingModule first");
  auto impl = std::make_unique<Impl>();
  impl->module = module;
  impl->options = options;
  impl->schedule = options.schedule;
  const std::string_view count = MetadataOf(module, kAccumulationKey);
  std::from_chars(count.data(), count.data() + count.size(), impl->accumulation);
  MSRT_ASSIGN_OR_RETURN(impl->model, CompileModule(std::move(environment), std::move(module),
                                                   options.compile));
  MSRT_RETURN_IF_ERROR(impl->Open(kTrainEntry, &impl->train));
  return std::unique_ptr<Trainer>(new Trainer(std::move(impl)));
}

Result<StepResult> Trainer::Step(const Batch& batch, const RunOptions& run) {
  Impl& t = *impl_;
  const bool updates = t.micro_batches + 1 >= t.accumulation;
  EntrySession& entry = updates ? t.train : t.accumulate;
  if (!updates) MSRT_RETURN_IF_ERROR(t.Open(kAccumulateEntry, &t.accumulate));
  const std::string_view name = updates ? kTrainEntry : kAccumulateEntry;
  const std::vector<ValueId>& inputs = entry.session->graph().inputs;
  const size_t tensors = inputs.size() - (updates ? 1 : 0);
  MSRT_RETURN_IF_ERROR(Impl::SetInputs(batch.tensors, tensors, name, entry.session.get()));
  const double rate = t.schedule.RateAt(t.steps);
  if (updates) {
    const DType dtype = entry.session->graph().value(inputs.back()).type.dtype;
    MSRT_RETURN_IF_ERROR(
        entry.session->SetInput(tensors, t.rate.ViewAs(dtype, rate), nullptr));
  }
  MSRT_RETURN_IF_ERROR(t.Run(entry.session.get(), run));
  MSRT_ASSIGN_OR_RETURN(StepResult result, t.Results(entry));
  result.rate = rate;
  result.updated = updates && !result.skipped;
  t.micro_batches = updates ? 0 : t.micro_batches + 1;
  t.steps += result.updated ? 1 : 0;
  // With a dynamic scale a loss that is not finite only skips the update.
  if (!std::isfinite(result.loss) && t.train.skipped < 0) {
    return MakeStatus(Code::kInvalidArgument, "step ", t.steps, ": the loss is ", result.loss,
                      "; reduce the learning rate or limit the gradients, and continue from a "
                      "checkpoint");
  }
  return result;
}

Result<Evaluation> Trainer::Evaluate(const Dataset& data, const VisitOutputs& visit) {
  Impl& t = *impl_;
  MSRT_RETURN_IF_ERROR(t.Open(kTestEntry, &t.test));
  Session& session = *t.test.session;
  const size_t first = t.test.correct >= 0 ? 2 : 1;
  MSRT_ASSIGN_OR_RETURN(const std::unique_ptr<BatchReader> reader, data.Batches(0));
  Evaluation total;
  if (t.test.correct >= 0) total.correct = 0;
  double loss = 0;
  while (true) {
    MSRT_ASSIGN_OR_RETURN(const std::optional<Batch> batch, reader->Next());
    if (!batch) break;
    if (batch->samples == 0) continue;
    MSRT_RETURN_IF_ERROR(
        Impl::SetInputs(batch->tensors, session.graph().inputs.size(), kTestEntry, &session));
    MSRT_RETURN_IF_ERROR(t.Run(&session, {}));
    MSRT_ASSIGN_OR_RETURN(const StepResult result, t.Results(t.test));
    loss += result.loss * static_cast<double>(batch->samples);
    total.samples += batch->samples;
    if (result.correct >= 0) total.correct += result.correct;
    if (!visit) continue;
    std::vector<TensorView> outputs;
    for (size_t i = first; i < session.graph().outputs.size(); ++i) {
      MSRT_ASSIGN_OR_RETURN(const TensorView output, session.Output(i));
      outputs.push_back(output);
    }
    MSRT_RETURN_IF_ERROR(visit(*batch, outputs));
  }
  if (total.samples > 0) total.loss = loss / static_cast<double>(total.samples);
  return total;
}

Result<std::vector<TensorView>> Trainer::Predict(const std::vector<ConstTensor>& inputs) {
  Impl& t = *impl_;
  MSRT_RETURN_IF_ERROR(t.Open(kEvalEntry, &t.eval));
  Session& session = *t.eval.session;
  MSRT_RETURN_IF_ERROR(
      Impl::SetInputs(inputs, session.graph().inputs.size(), kEvalEntry, &session));
  MSRT_RETURN_IF_ERROR(t.Run(&session, {}));
  std::vector<TensorView> outputs;
  for (size_t i = 0; i < session.graph().outputs.size(); ++i) {
    MSRT_ASSIGN_OR_RETURN(const TensorView output, session.Output(i));
    outputs.push_back(output);
  }
  return outputs;
}

void Trainer::Cancel() {
  // Sessions live as long as the trainer.
  if (Session* session = impl_->running) session->Cancel();
}

int64_t Trainer::steps() const { return impl_->steps; }
double Trainer::rate() const { return impl_->schedule.RateAt(impl_->steps); }
const Schedule& Trainer::schedule() const { return impl_->schedule; }
void Trainer::set_schedule(Schedule schedule) { impl_->schedule = std::move(schedule); }
const CompiledModel& Trainer::model() const { return *impl_->model; }
const Module& Trainer::module() const { return impl_->module; }

Result<ConstTensor> Trainer::State(const std::string& slot) const {
  MSRT_ASSIGN_OR_RETURN(const size_t index, impl_->SlotOf(slot));
  MSRT_ASSIGN_OR_RETURN(const TensorView view, impl_->train.session->State(index));
  return CopyOf(view);
}

Status Trainer::SetState(const std::string& slot, const ConstTensor& value) {
  MSRT_ASSIGN_OR_RETURN(const size_t index, impl_->SlotOf(slot));
  return impl_->train.session->WriteState(
      index, {value.dtype, value.dims, Layout::kPlain, const_cast<std::byte*>(value.bytes.data())});
}

Result<Checkpoint> Trainer::MakeCheckpoint() const {
  Checkpoint checkpoint;
  checkpoint.model = MetadataOf(impl_->module, kTrainingKey);
  checkpoint.steps = impl_->steps;
  checkpoint.micro_batches = impl_->micro_batches;
  checkpoint.schedule = impl_->schedule;
  for (const StateSlot& slot : impl_->model->module.states) {
    if (slot.role == StateRole::kCache) continue;
    MSRT_ASSIGN_OR_RETURN(ConstTensor value, State(slot.name));
    checkpoint.tensors.push_back({slot.name, slot.role, std::move(value)});
  }
  return checkpoint;
}

Status Trainer::Restore(const Checkpoint& checkpoint) {
  MSRT_RETURN_IF_ERROR(impl_->CheckRestorable(checkpoint));
  for (const CheckpointTensor& tensor : checkpoint.tensors)
    MSRT_RETURN_IF_ERROR(SetState(tensor.name, tensor.data));
  impl_->steps = checkpoint.steps;
  impl_->micro_batches = checkpoint.micro_batches;
  impl_->schedule = checkpoint.schedule;
  return OkStatus();
}

Result<Module> Trainer::Export() const {
  return MakeInferenceModule(impl_->module,
                             [this](const std::string& slot) { return State(slot); });
}

}  // namespace msrt
