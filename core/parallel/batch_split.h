// Divides the batch of a graph among ranks: each computes its own samples, and every sum over the
// batch becomes partial sums, which msrt.AllReduce nodes combine. Made of a training step, after
// its gradients and before passes, so that parameters, statistics and losses are equal on all
// ranks.
//
// A value follows the batch if one of its dims grows with it. Nodes along it are copied as they
// are, since the iteration spaces of their ops have the batch as a parallel axis. A node that
// reduces over the batch is repeated for each virtual shard of the rank (core/comm/tree_reduce.h):
// sums over all shards have the same bits for any number of ranks, provided that the elements of a
// sample do not depend on the number of samples (exact mode). Means, losses and batch
// normalisations, which need the number of all samples, are written as sums first.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "ops/evaluator.h"
#include "ops/registry.h"

namespace msrt {

// The name of the input, i64, that has the number of samples of all ranks.
inline constexpr std::string_view kAllSamplesInput = "msrt.all_samples";

struct BatchSplitOptions {
  int rank = 0, ranks = 1;
  // Sums over virtual shards, at most kVirtualShards ranks. Otherwise each rank adds up its samples
  // at once, and ranks are added in any order.
  bool by_shards = true;
  // The dims of each input of the graph. The first dim is the number of samples, of any size, where
  // the input's type leaves it open.
  std::vector<Dims> typical;
};

// How the inputs of the new graph follow from those of the old.
struct BatchSplit {
  int first_shard = 0, shards = 1;  // of this rank
  // By input of the old graph: whether it has samples. It is then `shards` inputs, one for each
  // shard, which may be empty. One more input, the last, is kAllSamplesInput.
  std::vector<bool> has_samples;
};

// Rewrites a validated graph. `ops` are user-defined ops; may be null. kUnsupported: a node mixes
// samples in a way that cannot be divided; the error names it.
Result<BatchSplit> SplitBatch(const BatchSplitOptions& options, const Evaluator& evaluator,
                              const OpSet* ops, Graph* graph);

}  // namespace msrt
