#include "core/api/trainer.h"

#include <cmath>
#include <limits>

#include "core/abi/msrt_train.h"
#include "core/api/arguments.h"
#include "core/api/errors.h"
#include "core/api/model.h"
#include "core/api/runtime.h"
#include "core/api/tensor.h"
#include "core/model/write.h"
#include "core/train/non_finite.h"
#include "core/train/training_module.h"

namespace msrt {
namespace {

class OneBatch final : public Dataset {
 public:
  explicit OneBatch(const Batch& batch) : batch_(batch) {}
  std::vector<Type> types() const override { return {}; }
  int64_t samples() const override { return batch_.samples; }
  int64_t batches_per_epoch() const override { return 1; }
  Result<std::unique_ptr<BatchReader>> Batches(int64_t, int64_t) const override {
    return std::unique_ptr<BatchReader>(std::make_unique<Reader>(batch_));
  }

 private:
  class Reader final : public BatchReader {
   public:
    explicit Reader(const Batch& batch) : batch_(batch) {}
    Result<std::optional<Batch>> Next() override { return std::exchange(batch_, std::nullopt); }

   private:
    std::optional<Batch> batch_;
  };
  const Batch& batch_;
};

void WriteValues(JsonWriter* json, std::string_view key, const Module& module, const Graph& graph,
                 std::span<const ValueId> values) {
  json->Key(key);
  json->BeginArray();
  for (const ValueId v : values)
    WriteTensorType(json, graph.value(v).name, graph.value(v).type, module.symbols);
  json->EndArray();
}

Result<std::string> InfoOf(const TrainerObject& object) {
  const Module& module = object.trainer->module();
  MSRT_ASSIGN_OR_RETURN(const Graph* test, object.Entry(kTestEntry));
  MSRT_ASSIGN_OR_RETURN(const Graph* eval, object.Entry(kEvalEntry));
  int64_t parameters = 0;
  JsonWriter json;
  json.BeginObject();
  json.Field("model", MetadataOf(module, kTrainingKey));
  json.Field("steps", object.trainer->steps());
  json.Field("learning_rate", object.trainer->rate());
  json.Field("accumulation", object.accumulation);
  WriteValues(&json, "inputs", module, *eval, eval->inputs);
  const ValueId target = test->inputs.back();
  json.Key("target");
  WriteTensorType(&json, test->value(target).name, test->value(target).type, module.symbols);
  WriteValues(&json, "outputs", module, *eval, eval->outputs);
  json.Key("states");
  json.BeginArray();
  for (const StateSlot& slot : module.states) {
    if (slot.role == StateRole::kParameter) parameters += slot.initial.dims.elements();
    WriteTensorType(&json, slot.name, slot.type, module.symbols, StateRoleName(slot.role));
  }
  json.EndArray();
  json.Field("parameters", parameters);
  json.Field("boost", BoostName(object.boost));
  json.Key("changes");
  json.BeginArray();
  for (const auto& [name, effect] : object.changes) {
    json.BeginObject();
    json.Field("name", name);
    json.Field("effect", effect);
    json.EndObject();
  }
  json.EndArray();
  if (object.activations) {
    json.Key("activations");
    json.BeginObject();
    json.Field("kept_bytes", object.activations->kept_bytes);
    json.Field("planned_bytes", object.activations->planned_bytes);
    json.Field("recomputed", object.activations->recomputed);
    json.EndObject();
  }
  json.EndObject();
  return json.Take();
}

// The schedule of single steps must know its end.
Status CheckSchedule(const TrainerObject& object) {
  const Schedule& schedule = object.trainer->schedule();
  if (!HasEnd(schedule) || schedule.total_steps < kOpenSteps) return OkStatus();
  return InvalidArgument("the schedule '", object.schedule,
                         "' depends on config.total_steps, which is 0; set it, or train with "
                         "msrt_trainer_fit");
}

}  // namespace

Result<Batch> BatchArgument(const msrt_tensor* const* inputs, size_t input_count,
                            const msrt_tensor* target, bool has_target) {
  if (input_count != 0) MSRT_RETURN_IF_ERROR(NotNull(inputs, "inputs"));
  Batch batch;
  for (size_t i = 0; i < input_count; ++i) {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<TensorObject> tensor,
                          HostTensor(inputs[i], StrCat("inputs[", i, "]")));
    batch.tensors.push_back(ConstantOver(tensor));
  }
  if (has_target) {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<TensorObject> tensor, HostTensor(target, "target"));
    batch.tensors.push_back(ConstantOver(tensor));
  }
  if (!batch.tensors.empty() && batch.tensors[0].dims.rank() > 0)
    batch.samples = batch.tensors[0].dims[0];
  batch.global_samples = batch.samples;
  return batch;
}

msrt_evaluation NewEvaluation() {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  msrt_evaluation evaluation = MSRT_INIT(msrt_evaluation);
  evaluation.loss = evaluation.accuracy = evaluation.top5 = evaluation.mean_iou = kUnknown;
  return evaluation;
}

}  // namespace msrt

using namespace msrt;

msrt_status msrt_trainer_create(msrt_runtime* runtime, const msrt_trainer_config* config,
                                msrt_trainer** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<RuntimeObject> owner,
                          ObjectOf<RuntimeObject>(runtime, "runtime"));
    MSRT_RETURN_IF_ERROR(CheckStructSize(config, "config"));
    MSRT_ASSIGN_OR_RETURN(const msrt_trainer_config given, ConfigArgument(config, "config"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(std::shared_ptr<TrainerObject> trainer,
                          MakeTrainer(owner->environment(), given));
    *out = NewHandle(std::move(trainer));
    return OkStatus();
  });
}

void msrt_trainer_destroy(msrt_trainer* trainer) { DestroyHandle<TrainerObject>(trainer); }

msrt_status msrt_trainer_info_json(msrt_trainer* trainer, const char** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<TrainerObject> object, EnterTrainer(trainer));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(object->info, InfoOf(*object));
    *out = object->info.c_str();
    return OkStatus();
  });
}

msrt_status msrt_trainer_step(msrt_trainer* trainer, const msrt_tensor* const* inputs,
                              size_t input_count, const msrt_tensor* target,
                              msrt_step_result* result) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<TrainerObject> object, EnterTrainer(trainer));
    if (result != nullptr) MSRT_RETURN_IF_ERROR(CheckStructSize(result, "result"));
    MSRT_RETURN_IF_ERROR(CheckSchedule(*object));
    MSRT_ASSIGN_OR_RETURN(const Batch batch, BatchArgument(inputs, input_count, target, true));
    MSRT_ASSIGN_OR_RETURN(const StepResult step,
                          object->safe_steps
                              ? SafeStep(object->trainer.get(), object->environment, batch)
                              : object->trainer->Step(batch));
    if (result == nullptr) return OkStatus();
    msrt_step_result filled = MSRT_INIT(msrt_step_result);
    filled.updated = step.updated ? 1 : 0;
    filled.skipped = step.skipped ? 1 : 0;
    filled.loss = step.loss;
    filled.correct = step.correct;
    filled.learning_rate = step.rate;
    filled.gradient_norm = step.gradient_norm;
    filled.steps = object->trainer->steps();
    WriteStruct(result, filled);
    return OkStatus();
  });
}

msrt_status msrt_trainer_set_rate(msrt_trainer* trainer, double learning_rate) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<TrainerObject> object, EnterTrainer(trainer));
    Schedule schedule;
    schedule.rate = learning_rate;
    MSRT_RETURN_IF_ERROR(schedule.Check());
    object->schedule = "constant";
    object->rate = learning_rate;
    object->trainer->set_schedule(std::move(schedule));
    return OkStatus();
  });
}

msrt_status msrt_trainer_predict(msrt_trainer* trainer, const msrt_tensor* const* inputs,
                                 size_t input_count, msrt_tensor** outputs, size_t output_count) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<TrainerObject> object, EnterTrainer(trainer));
    MSRT_RETURN_IF_ERROR(NotNull(outputs, "outputs"));
    MSRT_ASSIGN_OR_RETURN(const Graph* eval, object->Entry(kEvalEntry));
    if (output_count < 1 || output_count > eval->outputs.size())
      return InvalidArgument("output_count is ", output_count, ", must be from 1 to ",
                             eval->outputs.size(), ", the outputs of the model");
    MSRT_ASSIGN_OR_RETURN(const Batch batch, BatchArgument(inputs, input_count, nullptr, false));
    MSRT_ASSIGN_OR_RETURN(const std::vector<TensorView> values,
                          object->trainer->Predict(batch.tensors));
    std::vector<std::shared_ptr<TensorObject>> copies;
    for (size_t i = 0; i < output_count; ++i) {
      MSRT_ASSIGN_OR_RETURN(std::shared_ptr<TensorObject> copy,
                            CopyTensor(object->environment, values[i], "a prediction"));
      copies.push_back(std::move(copy));
    }
    std::vector<msrt_tensor*> handles;
    handles.reserve(output_count);
    for (std::shared_ptr<TensorObject>& copy : copies)
      handles.push_back(NewHandle(std::move(copy)));
    std::copy(handles.begin(), handles.end(), outputs);
    return OkStatus();
  });
}

msrt_status msrt_trainer_evaluate_batch(msrt_trainer* trainer, const msrt_tensor* const* inputs,
                                        size_t input_count, const msrt_tensor* target,
                                        msrt_evaluation* result) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<TrainerObject> object, EnterTrainer(trainer));
    MSRT_RETURN_IF_ERROR(CheckStructSize(result, "result"));
    MSRT_ASSIGN_OR_RETURN(const Batch batch, BatchArgument(inputs, input_count, target, true));
    MSRT_ASSIGN_OR_RETURN(const Evaluation evaluation, object->trainer->Evaluate(OneBatch(batch)));
    msrt_evaluation filled = NewEvaluation();
    const int64_t targets = batch.tensors.back().dims.elements();
    filled.count = evaluation.correct >= 0 ? targets : evaluation.samples;
    filled.loss = evaluation.loss;
    if (evaluation.correct >= 0 && targets > 0)
      filled.accuracy = static_cast<double>(evaluation.correct) / static_cast<double>(targets);
    WriteStruct(result, filled);
    return OkStatus();
  });
}

msrt_status msrt_trainer_cancel(msrt_trainer* trainer) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<TrainerObject> object,
                          ObjectOf<TrainerObject>(trainer, "trainer"));
    // A run ends after a step, so that its state is whole.
    if (object->fitting.load()) object->stop.store(true);
    else object->trainer->Cancel();
    return OkStatus();
  });
}

msrt_status msrt_trainer_state_read(msrt_trainer* trainer, const char* name, msrt_tensor** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<TrainerObject> object, EnterTrainer(trainer));
    MSRT_RETURN_IF_ERROR(NotNull(name, "name"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(const ConstTensor value, object->trainer->State(name));
    const TensorView view{value.dtype, value.dims, Layout::kPlain,
                          const_cast<std::byte*>(value.bytes.data())};
    MSRT_ASSIGN_OR_RETURN(std::shared_ptr<TensorObject> copy,
                          CopyTensor(object->environment, view, "a state"));
    *out = NewHandle(std::move(copy));
    return OkStatus();
  });
}

msrt_status msrt_trainer_state_write(msrt_trainer* trainer, const char* name,
                                     const msrt_tensor* value) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<TrainerObject> object, EnterTrainer(trainer));
    MSRT_RETURN_IF_ERROR(NotNull(name, "name"));
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<TensorObject> tensor, HostTensor(value, "value"));
    return object->trainer->SetState(name, ConstantOver(tensor));
  });
}

msrt_status msrt_trainer_save(msrt_trainer* trainer, const char* path) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<TrainerObject> object, EnterTrainer(trainer));
    MSRT_RETURN_IF_ERROR(NotNull(path, "path"));
    MSRT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, object->trainer->MakeCheckpoint());
    return WriteCheckpoint(checkpoint, path, object->environment->io);
  });
}

msrt_status msrt_trainer_restore(msrt_trainer* trainer, const char* path) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<TrainerObject> object, EnterTrainer(trainer));
    MSRT_RETURN_IF_ERROR(NotNull(path, "path"));
    MSRT_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                          ReadCheckpoint(path, object->environment->io));
    Status status = object->trainer->Restore(checkpoint);
    return status.ok() ? status : std::move(status).Within(StrCat("'", path, "'"));
  });
}

msrt_status msrt_trainer_export(msrt_trainer* trainer, const char* path) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<TrainerObject> object, EnterTrainer(trainer));
    MSRT_RETURN_IF_ERROR(NotNull(path, "path"));
    MSRT_ASSIGN_OR_RETURN(const Module trained, object->trainer->Export());
    return WriteModel(trained, path, object->environment->io);
  });
}

msrt_status msrt_trainer_export_model(msrt_trainer* trainer, const msrt_model_config* config,
                                      msrt_model** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<TrainerObject> object, EnterTrainer(trainer));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(const CompileOptions options,
                          CompileOptionsOf(config, *object->environment));
    MSRT_ASSIGN_OR_RETURN(Module trained, object->trainer->Export());
    auto model = std::make_shared<ModelObject>();
    MSRT_ASSIGN_OR_RETURN(model->compiled,
                          CompileModule(object->environment, std::move(trained), options));
    MSRT_RETURN_IF_ERROR(CheckTypicalNames(options, *model->compiled));
    *out = NewHandle(std::move(model));
    return OkStatus();
  });
}
