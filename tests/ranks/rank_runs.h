// Runs a module on several ranks, each a thread with its own runtime, and compares with the whole.
#pragma once

#include <string>
#include <vector>

#include "core/run/rank_session.h"

namespace msrt::testing {

// A runtime of one thread.
std::shared_ptr<Environment> RankEnvironment();

struct SplitRun {
  Status status;
  std::vector<RankReport> reports;   // by rank
  std::vector<ConstTensor> outputs;  // joined from the boxes of all ranks
  std::string problem;               // of the boxes: written twice, or not at all
};

Result<std::vector<ConstTensor>> RunWhole(const Module& module,
                                          const std::vector<ConstTensor>& inputs,
                                          const CompileOptions& options);

// `outputs` has the types of the whole outputs.
SplitRun RunSplit(const Module& module, const std::vector<ConstTensor>& inputs,
                  const CompileOptions& options, const SplitOptions& split,
                  const std::vector<ConstTensor>& outputs);

// Runs the module whole and split, and returns how they differ; empty: not in a single bit.
std::string CompareWithWhole(const Module& module, const std::vector<ConstTensor>& inputs,
                             const CompileOptions& options, const SplitOptions& split,
                             ExchangeTotals* totals = nullptr);

// Serves boxes of tensors in memory.
RankIo IoOf(const std::vector<ConstTensor>& inputs, SplitRun* run);

}  // namespace msrt::testing
