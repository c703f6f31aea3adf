// Datasets through a trainer: evaluation and whole runs.
#include <cmath>

#include "core/abi/msrt_train.h"
#include "core/api/arguments.h"
#include "core/api/dataset.h"
#include "core/api/errors.h"
#include "core/api/trainer.h"
#include "core/train/train_loop.h"
#include "core/train/training_module.h"

namespace msrt {
namespace {

// The least number of classes of a dataset whose targets are classes; 0: they are not.
int64_t ClassesOf(const TrainerObject& trainer, const DatasetObject& dataset) {
  if (!trainer.has_classes) return 0;
  return dataset.loader == nullptr ? 1 : std::max<int64_t>(NumClasses(dataset.loader->source()), 1);
}

bool HasLabelMaps(const DatasetObject& dataset) {
  return dataset.loader != nullptr && dataset.loader->source().has_label_maps();
}

msrt_train_epoch EpochOf(const EpochRow& row) {
  msrt_train_epoch epoch = MSRT_INIT(msrt_train_epoch);
  epoch.epoch = row.epoch;
  epoch.steps = row.step;
  epoch.loss = row.loss;
  epoch.accuracy = row.accuracy;
  epoch.learning_rate = row.rate;
  epoch.eval_loss = row.eval_loss;
  epoch.eval_accuracy = row.eval_accuracy;
  epoch.eval_top5 = row.eval_top5;
  epoch.eval_iou = row.eval_iou;
  epoch.seconds = row.seconds;
  epoch.samples_per_second = row.samples_per_second;
  return epoch;
}

msrt_train_progress ProgressOf(const TrainProgress& given, int64_t steps) {
  msrt_train_progress progress = {};
  progress.epoch = given.position.epoch;
  progress.epochs = given.epochs;
  progress.batch = given.position.batch;
  progress.batches = given.batches;
  progress.steps = steps;
  progress.loss = given.step.loss;
  progress.learning_rate = given.step.rate;
  progress.samples_per_second = given.samples_per_second;
  progress.seconds_left = given.seconds_left;
  return progress;
}

Result<TrainLoopOptions> OptionsOf(const msrt_fit_config& config, const TrainerObject& trainer,
                                   const DatasetObject& data) {
  for (const auto& [name, value] : {std::pair{"epochs", config.epochs},
                                    {"checkpoint_every", config.checkpoint_every},
                                    {"keep", config.keep},
                                    {"early_stop", config.early_stop}}) {
    if (value < 0) return InvalidArgument("config.", name, " is ", value, ", must be at least 0");
  }
  if (config.early_stop != 0 && config.eval == nullptr)
    return InvalidArgument("config.early_stop needs config.eval, which is NULL");
  if (config.resume != 0 && config.output == nullptr)
    return InvalidArgument("config.resume needs config.output, which is NULL");
  TrainLoopOptions options;
  options.epochs = config.epochs == 0 ? 1 : config.epochs;
  if (config.output != nullptr) options.output = config.output;
  options.resume = config.resume != 0;
  options.checkpoint_every = config.checkpoint_every;
  if (config.keep != 0) options.keep = config.keep;
  options.early_stop = config.early_stop;
  options.identity = IdentityOf(data);
  options.safe_steps = trainer.safe_steps;
  return options;
}

// A schedule without a number of steps ends with the run.
Status SetSchedule(int64_t epochs, const DatasetObject& data, TrainerObject* trainer) {
  const bool freezes = !MetadataOf(trainer->trainer->module(), kFreezingKey).empty();
  if (trainer->total_steps != 0 || !(freezes || HasEnd(trainer->trainer->schedule())))
    return OkStatus();
  const int64_t updates = epochs * data.data->batches_per_epoch() / trainer->accumulation;
  auto schedule = ParseSchedule(trainer->schedule, trainer->rate,
                                trainer->trainer->steps() + std::max<int64_t>(updates, 1));
  if (!schedule.ok()) return std::move(schedule).status();
  trainer->trainer->set_schedule(*std::move(schedule));
  return OkStatus();
}

// The run that msrt_trainer_cancel stops.
class Fitting {
 public:
  explicit Fitting(TrainerObject* trainer) : trainer_(trainer) {
    trainer_->stop.store(false);
    trainer_->fitting.store(true);
  }
  ~Fitting() { trainer_->fitting.store(false); }
  Fitting(const Fitting&) = delete;
  Fitting& operator=(const Fitting&) = delete;

 private:
  TrainerObject* const trainer_;
};

Result<TrainOutcome> Fit(const msrt_fit_config& config, TrainerObject* trainer,
                         const DatasetObject& data, const DatasetObject* eval) {
  TrainSetup setup;
  MSRT_ASSIGN_OR_RETURN(setup.options, OptionsOf(config, *trainer, data));
  MSRT_RETURN_IF_ERROR(SetSchedule(setup.options.epochs, data, trainer));
  setup.data = data.data.get();
  if (eval != nullptr) {
    setup.eval = eval->data.get();
    setup.classes = ClassesOf(*trainer, *eval);
    setup.label_maps = HasLabelMaps(*eval);
  }
  setup.trainer = trainer->trainer.get();
  setup.environment = trainer->environment;
  setup.probabilities = trainer->probabilities;
  setup.stop = &trainer->stop;
  if (config.progress != nullptr) {
    setup.on_step = [&](const TrainProgress& given) {
      const msrt_train_progress progress = ProgressOf(given, trainer->trainer->steps());
      config.progress(config.user, &progress);
    };
  }
  if (config.epoch_done != nullptr) {
    setup.on_epoch = [&](const EpochRow& row) {
      const msrt_train_epoch epoch = EpochOf(row);
      config.epoch_done(config.user, &epoch);
    };
  }
  const Fitting fitting(trainer);
  return Train(setup);
}

}  // namespace
}  // namespace msrt

using namespace msrt;

msrt_status msrt_trainer_fit(msrt_trainer* trainer, const msrt_fit_config* config,
                             msrt_train_epoch* last) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<TrainerObject> object, EnterTrainer(trainer));
    MSRT_RETURN_IF_ERROR(CheckStructSize(config, "config"));
    MSRT_ASSIGN_OR_RETURN(const msrt_fit_config given, ConfigArgument(config, "config"));
    if (last != nullptr) MSRT_RETURN_IF_ERROR(CheckStructSize(last, "last"));
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<DatasetObject> data,
                          ObjectOf<DatasetObject>(given.data, "config.data"));
    std::shared_ptr<DatasetObject> eval;
    if (given.eval != nullptr) {
      MSRT_ASSIGN_OR_RETURN(eval, ObjectOf<DatasetObject>(given.eval, "config.eval"));
    }
    MSRT_ASSIGN_OR_RETURN(const TrainOutcome outcome, Fit(given, &*object, *data, eval.get()));
    if (last != nullptr && !outcome.rows.empty()) WriteStruct(last, EpochOf(outcome.rows.back()));
    if (!outcome.stopped) return OkStatus();
    return MakeStatus(Code::kCancelled, "the run was stopped after step ", object->trainer->steps(),
                      "; the parameters are those of that step");
  });
}

msrt_status msrt_trainer_evaluate(msrt_trainer* trainer, msrt_dataset* dataset,
                                  msrt_evaluation* result) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<TrainerObject> object, EnterTrainer(trainer));
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<DatasetObject> data,
                          ObjectOf<DatasetObject>(dataset, "dataset"));
    MSRT_RETURN_IF_ERROR(CheckStructSize(result, "result"));
    msrt_evaluation filled = NewEvaluation();
    const int64_t classes = ClassesOf(*object, *data);
    if (classes == 0) {
      MSRT_ASSIGN_OR_RETURN(const Evaluation sums, object->trainer->Evaluate(*data->data));
      filled.count = sums.samples;
      filled.loss = sums.loss;
    } else {
      const Fitting fitting(&*object);  // so that it can be cancelled between batches
      MSRT_ASSIGN_OR_RETURN(const MetricSums sums,
                            EvaluateClasses(object->trainer.get(), *data->data, classes,
                                            object->probabilities, &object->stop));
      filled.count = sums.count();
      filled.loss = sums.loss();
      filled.accuracy = Accuracy(sums.confusion);
      filled.top5 = sums.top5();
      filled.mean_iou = MeanOfKnown(IntersectionOverUnion(sums.confusion));
    }
    WriteStruct(result, filled);
    return OkStatus();
  });
}
