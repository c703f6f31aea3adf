// From msrt_trainer_config to a core trainer.
#include <algorithm>

#include "core/abi/msrt_train.h"
#include "core/api/arguments.h"
#include "core/api/graph.h"
#include "core/api/model.h"
#include "core/api/trainer.h"
#include "core/model/load.h"
#include "core/train/training_module.h"

namespace msrt {
namespace {

struct LossRow {
  msrt_loss number;
  LossKind kind;
};
constexpr LossRow kLosses[] = {
    {MSRT_LOSS_CROSS_ENTROPY, LossKind::kCrossEntropy},
    {MSRT_LOSS_MEAN_SQUARES, LossKind::kMeanSquares},
    {MSRT_LOSS_MEAN_ABSOLUTE, LossKind::kMeanAbsolute},
    {MSRT_LOSS_HUBER, LossKind::kHuber},
    {MSRT_LOSS_BINARY_CROSS_ENTROPY, LossKind::kBinaryCrossEntropy},
    {MSRT_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS, LossKind::kBinaryCrossEntropyWithLogits},
    {MSRT_LOSS_KULLBACK_LEIBLER, LossKind::kKullbackLeibler},
    {MSRT_LOSS_DICE, LossKind::kDice},
};

Status SetLoss(const msrt_trainer_config& config, TrainingSpec* spec) {
  const auto* row = std::find_if(std::begin(kLosses), std::end(kLosses),
                                 [&](const LossRow& r) { return r.number == config.loss; });
  if (row == std::end(kLosses))
    return InvalidArgument("config.loss is ", config.loss, ", must be one of MSRT_LOSS_...");
  spec->loss.kind = row->kind;
  if (!(config.label_smoothing >= 0) || config.label_smoothing > 1)
    return InvalidArgument("config.label_smoothing is ", config.label_smoothing,
                           ", must be between 0 and 1");
  spec->loss.label_smoothing = config.label_smoothing;
  if (config.has_ignored_class != 0) spec->loss.ignore_index = config.ignored_class;
  if (!(config.huber_delta >= 0))
    return InvalidArgument("config.huber_delta is ", config.huber_delta, ", must be positive");
  if (config.huber_delta != 0) spec->loss.delta = config.huber_delta;
  spec->target_is_distribution = config.target_is_distribution != 0;
  if (config.class_weight_count != 0) {
    MSRT_RETURN_IF_ERROR(NotNull(config.class_weights, "config.class_weights"));
    spec->class_weights.assign(config.class_weights,
                               config.class_weights + config.class_weight_count);
  }
  if (config.output < 0)
    return InvalidArgument("config.output is ", config.output, ", must be at least 0");
  spec->output = static_cast<size_t>(config.output);
  return OkStatus();
}

Status SetParameters(const msrt_trainer_config& config, TrainingSpec* spec) {
  std::string pattern;
  for (const char* c = config.frozen == nullptr ? "" : config.frozen;; ++c) {
    if (*c != ',' && *c != '\0') {
      if (*c != ' ') pattern.push_back(*c);
      continue;
    }
    if (!pattern.empty()) spec->frozen.push_back(std::move(pattern));
    pattern.clear();
    if (*c == '\0') break;
  }
  if (config.group_count != 0) MSRT_RETURN_IF_ERROR(NotNull(config.groups, "config.groups"));
  for (size_t i = 0; i < config.group_count; ++i) {
    const msrt_parameter_group& given = config.groups[i];
    MSRT_RETURN_IF_ERROR(NotNull(given.pattern, StrCat("config.groups[", i, "].pattern")));
    ParameterGroup group;
    group.pattern = given.pattern;
    group.rate_factor = given.rate_factor;
    if (given.weight_decay >= 0) group.weight_decay = given.weight_decay;
    spec->groups.push_back(std::move(group));
  }
  return OkStatus();
}

Result<TrainingSpec> SpecOf(const msrt_trainer_config& config) {
  constexpr double kFirstDynamicScale = 65536;
  TrainingSpec spec;
  MSRT_RETURN_IF_ERROR(SetLoss(config, &spec));
  if (config.optimizer != nullptr) {
    auto optimizer = ParseOptimizer(config.optimizer);
    if (!optimizer.ok()) return std::move(optimizer).status().Within("config.optimizer");
    spec.optimizer = *std::move(optimizer);
  }
  spec.optimizer.weight_decay = config.weight_decay;
  spec.optimizer.decays_vectors = config.decay_vectors != 0;
  MSRT_RETURN_IF_ERROR(SetParameters(config, &spec));
  spec.clip_value = config.clip_value;
  spec.clip_norm = config.clip_norm;
  if (config.accumulation != 0) spec.accumulation = config.accumulation;
  spec.loss_scale.dynamic = config.dynamic_loss_scale != 0;
  if (config.loss_scale != 0) spec.loss_scale.initial = config.loss_scale;
  else if (spec.loss_scale.dynamic) spec.loss_scale.initial = kFirstDynamicScale;
  spec.average_decay = config.average_decay;
  return spec;
}

Result<Module> ModelOf(const msrt_trainer_config& config, const Environment& environment) {
  if ((config.model == nullptr) == (config.graph == nullptr))
    return InvalidArgument("config.model and config.graph are both ",
                           config.model == nullptr ? "NULL" : "set", "; set one of them");
  Module module;
  if (config.model != nullptr) {
    LoadOptions options;
    options.by_copy = config.model_config != nullptr && config.model_config->copy_file != 0;
    MSRT_ASSIGN_OR_RETURN(module, LoadFile(environment.io, config.model, options));
  } else {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<GraphObject> graph,
                          Exclusive<GraphObject>::Enter(config.graph, "config.graph"));
    module = graph->module();
  }
  if (module.name.empty()) module.name = "model";  // checkpoints name their model
  return module;
}

Status SetSpeed(const msrt_trainer_config& config, const Environment& environment,
                const TrainingSettings& settings, TrainerObject* object) {
  constexpr Boost kBoosts[] = {Boost::kO1, Boost::kOff, Boost::kO2, Boost::kO3};
  if (config.boost < 0 || config.boost >= static_cast<msrt_boost>(std::size(kBoosts)))
    return InvalidArgument("config.boost is ", config.boost, ", must be one of MSRT_BOOST_...");
  if (config.precision != MSRT_PRECISION_F32 && config.precision != MSRT_PRECISION_MIXED)
    return InvalidArgument("config.precision is ", config.precision,
                           ", must be one of MSRT_PRECISION_...");
  if (config.activation_memory != nullptr) {
    auto limit = ParseActivationLimit(config.activation_memory);
    if (!limit.ok()) return std::move(limit).status().Within("config.activation_memory");
    settings.spec->activations = *std::move(limit);
    settings.spec->activations.typical = settings.compile->typical;
    settings.spec->activations.evaluator = environment.evaluator;
  }
  object->boost = kBoosts[config.boost];
  if (config.precision == MSRT_PRECISION_MIXED)
    MSRT_RETURN_IF_ERROR(ApplyPrecision(Precision::kMixed, settings).Within("config.precision"));
  return ApplyBoost(object->boost, settings).Within("config.boost");
}

Result<Schedule> ScheduleOf(const TrainerObject& trainer) {
  auto schedule = ParseSchedule(trainer.schedule, trainer.rate,
                                trainer.total_steps == 0 ? kOpenSteps : trainer.total_steps);
  if (!schedule.ok()) return std::move(schedule).status().Within("config.schedule");
  return schedule;
}

}  // namespace

Result<const Graph*> TrainerObject::Entry(std::string_view name) const {
  const Module& module = trainer->module();
  MSRT_ASSIGN_OR_RETURN(const size_t entry, FindEntry(module, name));
  return &module.graphs[module.entries[entry]];
}

bool HasEnd(const Schedule& schedule) {
  return schedule.kind == ScheduleKind::kCosine || schedule.kind == ScheduleKind::kOneCycle ||
         schedule.kind == ScheduleKind::kPolynomial;
}

Result<std::shared_ptr<TrainerObject>> MakeTrainer(std::shared_ptr<const Environment> environment,
                                                   const msrt_trainer_config& config) {
  constexpr double kRate = 0.01;
  if (config.reserved != 0)
    return InvalidArgument("config.reserved is ", config.reserved, ", must be 0");
  if (config.total_steps < 0)
    return InvalidArgument("config.total_steps is ", config.total_steps, ", must be at least 0");
  auto object = std::make_shared<TrainerObject>();
  object->environment = environment;
  object->schedule = config.schedule == nullptr ? "constant" : config.schedule;
  object->rate = config.learning_rate == 0 ? kRate : config.learning_rate;
  object->total_steps = config.total_steps;
  object->safe_steps = config.safe_steps != 0;
  TrainerOptions options;
  MSRT_ASSIGN_OR_RETURN(TrainingSpec spec, SpecOf(config));
  MSRT_ASSIGN_OR_RETURN(options.compile, CompileOptionsOf(config.model_config, *environment));
  const TrainingSettings settings{&spec, &options.compile, &object->rate};
  MSRT_RETURN_IF_ERROR(SetSpeed(config, *environment, settings, object.get()));
  MSRT_ASSIGN_OR_RETURN(options.schedule, ScheduleOf(*object));
  options.session.memory_cap_bytes = config.memory_cap_bytes;
  MSRT_ASSIGN_OR_RETURN(Module module, ModelOf(config, *environment));
  if (MetadataOf(module, kTrainingKey).empty()) {
    SpecReport report;
    MSRT_ASSIGN_OR_RETURN(
        module, MakeTrainingModule(std::move(module), spec, environment->ops.get(), &report));
    object->changes = ListChanges(object->boost, settings, report);
    if (spec.activations.is_set()) object->activations = report.activations;
  }
  MSRT_ASSIGN_OR_RETURN(object->trainer,
                        Trainer::Create(std::move(environment), std::move(module), options));
  MSRT_RETURN_IF_ERROR(CheckTypicalNames(options.compile, object->trainer->model()));
  const std::string count(MetadataOf(object->trainer->module(), kAccumulationKey));
  object->accumulation = std::max<int64_t>(std::strtoll(count.c_str(), nullptr, 10), 1);
  object->has_classes = HasClassTargets(object->trainer->module());
  MSRT_ASSIGN_OR_RETURN(const Graph* eval, object->Entry(kEvalEntry));
  object->probabilities = HasProbabilities(*eval);
  return object;
}

}  // namespace msrt
