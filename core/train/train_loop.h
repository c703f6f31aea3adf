// The loop of training: epochs of steps, evaluation, checkpoints, history. msrun, the C API and
// through it the Python package run this one.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/run/run_context.h"
#include "core/train/metrics.h"
#include "core/train/train_history.h"
#include "core/train/train_ranks.h"
#include "core/train/trainer.h"

namespace msrt {

// After a step.
struct TrainProgress {
  StepResult step;
  DataPosition position;                            // the next batch
  int64_t epochs = 0, batches = 0;                  // of the run, and of an epoch
  double samples_per_second = 0, seconds_left = 0;  // 0: not known yet
};

struct TrainLoopOptions {
  int64_t epochs = 10;
  std::string output;   // folder of checkpoints and history.csv; empty: there are none
  bool resume = false;  // continue from the newest checkpoint in the folder, if there is one
  int64_t checkpoint_every = 0;  // updates; 0: after each epoch
  int64_t keep = 5;              // the number of last checkpoints
  int64_t early_stop = 0;        // epochs without a better evaluation; 0: never
  // Facts of the run, by name, that must be equal when it is resumed: the batch, the data.
  std::vector<std::pair<std::string, std::string>> identity = {};
  bool safe_steps = false;  // by SafeStep (non_finite.h)

  std::string checkpoint_folder() const { return output + "/checkpoints"; }
};

struct TrainSetup {
  TrainLoopOptions options = {};
  const Dataset* data = nullptr;
  const Dataset* eval = nullptr;  // null: no evaluation
  Trainer* trainer = nullptr;
  TrainRanks ranks = {};    // those of the trainer
  bool fixed_sums = false;  // BatchSums::kFixed, for evaluations
  std::shared_ptr<const Environment> environment = {};
  int64_t classes = 0;        // of the evaluation's targets, at least; 0: they are no classes
  bool label_maps = false;    // the evaluation's targets are classes of pixels
  ClassLoss class_loss = {};  // of evaluations, if the targets are classes
  const std::atomic<bool>* stop = nullptr;  // may be null
  // Returns the schedule of a run before whose first step there were so many updates. Null: that of
  // the trainer.
  std::function<Result<Schedule>(int64_t updates)> schedule = nullptr;
  // Called by the thread that trains; may be null.
  std::function<void(const TrainProgress&)> on_step = nullptr;
  std::function<void(const EpochRow&)> on_epoch = nullptr;
  std::function<void(const DataPosition&)> on_resume = nullptr;
};

struct TrainOutcome {
  std::vector<EpochRow> rows;
  std::optional<MetricSums> evaluation;  // the last, of classes
  double step_millis = 0;                // the mean of this process's steps, without the first
  int64_t steps_timed = 0;
  ExchangeTotals exchanges = {};  // of these steps together
  bool stopped = false;           // by *stop: the run is not complete
};

// Trains until the epochs are done, or *stop. Writes checkpoints and history.csv, on rank 0. All
// ranks have the same outcome, apart from times. Without `resume`, a folder that has checkpoints is
// refused. A checkpoint with a parameter that is not finite is not written, but an error.
Result<TrainOutcome> Train(const TrainSetup& setup);

struct ClassEvaluation {
  int64_t classes = 1;  // at least: the model may have more
  ClassLoss loss = {};
  const std::atomic<bool>* stop = nullptr;  // may be null; not looked at with several ranks
  TrainRanks ranks = {};
  bool fixed_sums = false;
};

// Classifies a dataset with its labels, i64, as second tensor, by the output that the trainer's
// loss compares. Labels of the class that the loss ignores do not count. kCancelled: *stop was set.
Result<MetricSums> EvaluateClasses(Trainer* trainer, const Dataset& data,
                                   const ClassEvaluation& options);

}  // namespace msrt
