#include "core/train/trainer.h"

#include <atomic>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "core/comm/communicator.h"
#include "core/comm/tree_reduce.h"
#include "core/graph/constants.h"
#include "core/parallel/batch_split.h"
#include "core/train/inference_module.h"
#include "core/train/rank_agreement.h"
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
    return {dtype,
            {},
            Layout::kPlain,
            dtype == DType::kF64 ? static_cast<void*>(&number) : static_cast<void*>(&single)};
  }
};

// A session of one entry, and where its results are.
struct EntrySession {
  std::unique_ptr<Session> session;
  std::optional<BatchSplit> split;                       // if the batch is divided
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
  std::map<std::string, EntrySession, std::less<>> frozen;  // steps in later stages, by entry
  Schedule schedule;
  int64_t accumulation = 1, micro_batches = 0, steps = 0, freezing_stages = 0;
  Scalar rate;
  std::map<std::string, BatchSplit, std::less<>> splits;  // by entry; those that are divided
  int64_t all_samples = 0;                                // of the batch of a step
  std::atomic<Session*> running{nullptr};                 // for Cancel
  const Session* stepped = nullptr;                       // by the last step

  Communicator* ranks() const { return options.session.communicator; }
  bool is_divided() const { return !splits.empty(); }

  // Stage k of n begins after part k / (n + 1) of all updates.
  int FreezingStage() const {
    if (freezing_stages == 0 || schedule.total_steps <= 0) return 0;
    const double done = static_cast<double>(steps) / static_cast<double>(schedule.total_steps);
    const auto stage = static_cast<int64_t>(done * static_cast<double>(freezing_stages + 1));
    return static_cast<int>(std::min(stage, freezing_stages));
  }

  // The session of a step in its stage.
  Result<EntrySession*> StepSession(bool updates, int stage) {
    const std::string name = EntryOfStage(updates ? kTrainEntry : kAccumulateEntry, stage);
    EntrySession* entry = stage > 0 ? &frozen[name] : updates ? &train : &accumulate;
    MSRT_RETURN_IF_ERROR(Open(name, entry));
    return entry;
  }

  Status Run(Session* session, const RunOptions& run) {
    running = session;
    Status status = session->Run(run);
    running = nullptr;
    return status;
  }

  Status Open(std::string_view name, EntrySession* entry) const {
    if (entry->session != nullptr) return OkStatus();
    MSRT_ASSIGN_OR_RETURN(const size_t index, FindEntry(module, name));
    MSRT_ASSIGN_OR_RETURN(entry->session,
                          Session::Create(model, index, options.session, train.session.get()));
    entry->FindOutputs();
    const auto split = splits.find(name);
    if (split != splits.end()) entry->split = split->second;
    return OkStatus();
  }

  // Divides the batch of an entry among ranks and virtual shards. `typical` by name of input.
  Status Divide(Module* training, const Environment& environment, std::string_view name) {
    MSRT_ASSIGN_OR_RETURN(const size_t entry, FindEntry(*training, name));
    Graph& graph = training->graphs[training->entries[entry]];
    BatchSplitOptions split;
    if (ranks() != nullptr) split.rank = ranks()->rank(), split.ranks = ranks()->size();
    split.by_shards = options.sums == BatchSums::kFixed;
    for (ValueId v : graph.inputs) {
      Dims dims = graph.value(v).type.dims;
      for (const auto& [input, typical] : options.compile.typical) {
        if (input == graph.value(v).name) dims = typical;
      }
      split.typical.push_back(dims);
    }
    MSRT_ASSIGN_OR_RETURN(BatchSplit made,
                          SplitBatch(split, *environment.evaluator, environment.ops.get(), &graph));
    splits.emplace(name, std::move(made));
    return OkStatus();
  }

  // The typical dims of the inputs of the shards, from those of whole batches.
  std::vector<std::pair<std::string, Dims>> TypicalOfShards(const Module& training) const {
    const Graph& graph = training.main();
    const BatchSplit& split = splits.find(kTrainEntry)->second;
    std::vector<std::pair<std::string, Dims>> typical;
    for (ValueId v : graph.inputs) {
      const std::string& name = graph.value(v).name;
      for (const auto& [input, dims] : options.compile.typical) {
        if (dims.empty()) continue;
        Dims part = dims;
        const int ranks_count = ranks() == nullptr ? 1 : ranks()->size();
        const int64_t parts = split.shards == 1 ? ranks_count : kVirtualShards;
        part[0] = std::max<int64_t>(1, (dims[0] + parts - 1) / parts);
        const bool shard = split.shards > 1 && name.starts_with(input + ".");
        if (shard || (split.shards == 1 && name == input)) typical.emplace_back(name, part);
      }
    }
    return typical;
  }

  Status CheckRanks(const Module& training) const {
    std::string text = Print(training);
    for (const StateSlot& slot : training.states) StrAppend(&text, slot.name, slot.type, "\n");
    return CheckSameOnRanks(*ranks(), "model, optimizer or options", text,
                            "start all ranks with the same command and the same model");
  }

  // Sets the inputs of a divided entry: those with samples, by shard, and the number of samples.
  Status SetShardInputs(const Batch& batch, size_t expected, std::string_view name,
                        EntrySession* entry) {
    static std::byte nothing[1];
    if (batch.tensors.size() != expected)
      return InvalidArgument("a batch for entry '", name, "' has ", batch.tensors.size(),
                             " tensors, must have ", expected);
    const BatchSplit& split = *entry->split;
    all_samples = batch.global_samples;
    const bool by_shards = options.sums == BatchSums::kFixed;
    const int64_t first = FirstSampleOfShard(all_samples, split.first_shard);
    size_t input = 0;
    for (const ConstTensor& t : batch.tensors) {
      if (t.dims.empty() || t.dims[0] != batch.samples)
        return InvalidArgument("a batch of ", batch.samples, " samples has a tensor ", t.type());
      const size_t width =
          batch.samples == 0 ? 0 : t.bytes.size() / static_cast<size_t>(batch.samples);
      for (int s = 0; s < split.shards; ++s) {
        int64_t begin = 0, end = batch.samples;
        if (by_shards) {
          begin = FirstSampleOfShard(all_samples, split.first_shard + s) - first;
          end = FirstSampleOfShard(all_samples, split.first_shard + s + 1) - first;
        }
        if (end > batch.samples)
          return InvalidArgument("a rank got ", batch.samples, " of ", all_samples,
                                 " samples; it needs those of its shards (SamplesOfRank)");
        Dims dims = t.dims;
        dims[0] = end - begin;
        std::byte* data = end == begin ? nothing
                                       : const_cast<std::byte*>(t.bytes.data()) +
                                             static_cast<size_t>(begin) * width;
        MSRT_RETURN_IF_ERROR(
            entry->session->SetInput(input++, {t.dtype, dims, Layout::kPlain, data}, t.owner));
      }
    }
    const size_t last = entry->session->graph().inputs.size() - 1;
    return entry->session->SetInput(last, {DType::kI64, {}, Layout::kPlain, &all_samples}, nullptr);
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
      return InvalidArgument("'", tensor.name, "' is ", tensor.data.type(), " in the checkpoint, ",
                             states[*slot].type, " in model '", name, "'");
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
  CompileOptions compile = options.compile;
  compile.place.exact = compile.place.exact || options.sums == BatchSums::kFixed;
  if (impl->ranks() != nullptr) MSRT_RETURN_IF_ERROR(impl->CheckRanks(module));
  if (options.sums == BatchSums::kFixed ||
      (impl->ranks() != nullptr && impl->ranks()->size() > 1)) {
    for (const uint32_t entry : std::vector<uint32_t>(module.entries)) {
      const std::string name = module.graphs[entry].name;
      if (name != kEvalEntry) MSRT_RETURN_IF_ERROR(impl->Divide(&module, *environment, name));
    }
    compile.typical = impl->TypicalOfShards(module);
  }
  impl->schedule = options.schedule;
  const std::string_view count = MetadataOf(module, kAccumulationKey);
  std::from_chars(count.data(), count.data() + count.size(), impl->accumulation);
  const std::string_view stages = MetadataOf(impl->module, kFreezingKey);
  std::from_chars(stages.data(), stages.data() + stages.size(), impl->freezing_stages);
  MSRT_ASSIGN_OR_RETURN(impl->model,
                        CompileModule(std::move(environment), std::move(module), compile));
  MSRT_RETURN_IF_ERROR(impl->Open(kTrainEntry, &impl->train));
  std::unique_ptr<Trainer> trainer(new Trainer(std::move(impl)));
  MSRT_RETURN_IF_ERROR(trainer->TakeOverFromFirstRank());
  return trainer;
}

Result<StepResult> Trainer::Step(const Batch& batch, const RunOptions& run) {
  Impl& t = *impl_;
  const bool updates = t.micro_batches + 1 >= t.accumulation;
  const int stage = t.FreezingStage();
  MSRT_ASSIGN_OR_RETURN(EntrySession* const step_session, t.StepSession(updates, stage));
  EntrySession& entry = *step_session;
  const std::string name = EntryOfStage(updates ? kTrainEntry : kAccumulateEntry, stage);
  const std::vector<ValueId>& inputs = entry.session->graph().inputs;
  size_t rate_input = inputs.size() - 1;
  if (entry.split.has_value()) {
    const size_t tensors = entry.split->has_samples.size() - (updates ? 1 : 0);
    MSRT_RETURN_IF_ERROR(t.SetShardInputs(batch, tensors, name, &entry));
    --rate_input;
  } else {
    const size_t tensors = inputs.size() - (updates ? 1 : 0);
    MSRT_RETURN_IF_ERROR(Impl::SetInputs(batch.tensors, tensors, name, entry.session.get()));
  }
  const double rate = t.schedule.RateAt(t.steps);
  if (updates) {
    const DType dtype = entry.session->graph().value(inputs[rate_input]).type.dtype;
    MSRT_RETURN_IF_ERROR(entry.session->SetInput(rate_input, t.rate.ViewAs(dtype, rate), nullptr));
  }
  t.stepped = entry.session.get();
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
    if (t.test.split.has_value()) {
      const size_t tensors = t.test.split->has_samples.size();
      MSRT_RETURN_IF_ERROR(t.SetShardInputs(*batch, tensors, kTestEntry, &t.test));
    } else {
      if (batch->samples == 0) continue;
      MSRT_RETURN_IF_ERROR(
          Impl::SetInputs(batch->tensors, session.graph().inputs.size(), kTestEntry, &session));
    }
    MSRT_RETURN_IF_ERROR(t.Run(&session, {}));
    MSRT_ASSIGN_OR_RETURN(const StepResult result, t.Results(t.test));
    const int64_t samples = t.test.split.has_value() ? batch->global_samples : batch->samples;
    loss += result.loss * static_cast<double>(samples);
    total.samples += samples;
    if (result.correct >= 0) total.correct += result.correct;
    if (!visit || batch->samples == 0) continue;
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
int Trainer::freezing_stage() const { return impl_->FreezingStage(); }
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

Status Trainer::TakeOverFromFirstRank() {
  Communicator* const comm = impl_->ranks();
  if (comm == nullptr || comm->size() == 1) return OkStatus();
  const auto receive = [&](void* data, size_t bytes) -> Status {
    if (bytes == 0) return OkStatus();
    MSRT_ASSIGN_OR_RETURN(const CommWorkPtr work, comm->Broadcast(data, bytes, 0));
    return work->Wait({});
  };
  const std::vector<StateSlot>& states = impl_->model->module.states;
  for (const StateSlot& slot : states) {
    if (slot.role == StateRole::kCache) continue;
    MSRT_ASSIGN_OR_RETURN(const ConstTensor value, State(slot.name));
    MSRT_RETURN_IF_ERROR(
        receive(const_cast<std::byte*>(value.bytes.data()), value.bytes.size()));  // a copy
    if (comm->rank() != 0) MSRT_RETURN_IF_ERROR(SetState(slot.name, value));
  }
  MSRT_RETURN_IF_ERROR(receive(&impl_->steps, sizeof impl_->steps));
  return receive(&impl_->micro_batches, sizeof impl_->micro_batches);
}

const ExchangeTotals& Trainer::exchanges() const {
  const Session* const stepped = impl_->stepped;
  return (stepped == nullptr ? impl_->train.session.get() : stepped)->exchanges();
}

Result<Module> Trainer::Export() const {
  return MakeInferenceModule(impl_->module,
                             [this](const std::string& slot) { return State(slot); });
}

}  // namespace msrt
