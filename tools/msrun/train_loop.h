// The loop of msrun train: epochs of steps, evaluation, checkpoints, history.
#pragma once

#include <atomic>
#include <optional>

#include "core/train/metrics.h"
#include "core/train/trainer.h"
#include "tools/msrun/train_arguments.h"
#include "tools/msrun/train_history.h"
#include "tools/msrun/train_ranks.h"

namespace msrt {

struct TrainSetup {
  const TrainArguments* arguments = nullptr;
  const DataLoader* data = nullptr;
  const DataLoader* eval = nullptr;  // null: no evaluation
  Trainer* trainer = nullptr;
  const TrainRanks* ranks = nullptr;
  bool fixed_sums = false;
  std::shared_ptr<const Environment> environment = {};
  bool probabilities = false;  // the model's output
  const std::atomic<bool>* stop = nullptr;
};

struct TrainOutcome {
  std::vector<EpochRow> rows;
  std::optional<MetricSums> evaluation;  // the last
  double step_millis = 0;                // the mean of this process's steps, without the first
  int64_t steps_timed = 0;
  bool stopped = false;  // by the user: the run is not complete
};

// Trains until the epochs are done, or *stop. Writes checkpoints and history.csv on rank 0. All
// ranks have the same outcome, apart from times.
Result<TrainOutcome> Train(const TrainSetup& setup);

}  // namespace msrt
