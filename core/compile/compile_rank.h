// Compiles the part of a model that one rank runs.
#pragma once

#include "core/compile/compile.h"
#include "core/parallel/split.h"

namespace msrt {

struct RankModel {
  std::shared_ptr<const CompiledModel> model;
  RankModule split;  // without its module, which `model` has
};

// Optimises the whole module as for one rank, splits it, and compiles the graph of `rank`. In exact
// mode every piece has the arithmetic that its node has in the whole, so that bits do not depend on
// the split. `inputs` are the dims of the whole inputs of the entry; a session of the result gets
// and returns the boxes in `split`, and needs a communicator of as many ranks.
Result<RankModel> CompileRank(std::shared_ptr<const Environment> environment, Module module,
                              size_t entry, std::span<const Dims> inputs,
                              const CompileOptions& options, const SplitOptions& split, int rank);

// Splits the module for all ranks as CompileRank does, and compiles nothing. The results say what
// each rank reads, owns and sends; they have no modules.
Result<std::vector<RankModule>> PlanRanks(std::shared_ptr<const Environment> environment,
                                          Module module, size_t entry, std::span<const Dims> inputs,
                                          const CompileOptions& options, const SplitOptions& split);

}  // namespace msrt
