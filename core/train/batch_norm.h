// BatchNormalization in training: a model for inference normalises with given statistics; its
// training form computes those of the batch, and keeps running ones as state for evaluation.
#pragma once

#include <vector>

#include "core/graph/graph.h"
#include "core/train/parameters.h"
#include "ops/grad_builder.h"

namespace msrt {

// A constant that becomes a state slot of role kStatistic.
struct Statistic {
  ValueId constant{};
  int64_t slot = -1;
};

struct TrainedNorm {
  size_t node = 0;  // in the model's main graph
  Statistic mean, variance;
  double keep = 0;  // the part of the running statistics that an update keeps
};

// Adds the slots of all BatchNormalization nodes of the main graph whose statistics are constants
// and whose scale is one of the parameters. With a frozen scale, a node keeps its statistics.
Result<std::vector<TrainedNorm>> AddStatistics(Module* module,
                                               const std::vector<Parameter>& parameters);

// The statistics of a batch, in the order of the norms.
struct BatchStatistics {
  std::vector<ValueId> inputs, means, variances;
};
// Makes the nodes compute the statistics of the batch. `first` is the position of the main graph's
// first node in `graph`.
Result<BatchStatistics> SwitchToBatchStatistics(const std::vector<TrainedNorm>& norms, size_t first,
                                                Graph* graph);

// Writes the new running statistics, with variances of n - 1 as PyTorch has them. `skip` may be
// kNoValue.
void UpdateStatistics(const Module& module, const std::vector<TrainedNorm>& norms,
                      const BatchStatistics& batch, ValueId skip, GradBuilder* builder);

}  // namespace msrt
