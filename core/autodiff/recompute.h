// Recomputation: what the backward nodes of a training step need of the forward ones is computed
// again instead of being kept. Runs after AddGradients, on the graph that has both. The copies have
// a region of their own (Node::region), so that merge_common does not undo the work.
#pragma once

#include <span>
#include <vector>

#include "core/graph/graph.h"

namespace msrt {

// A range of forward nodes whose results backward nodes compute again.
struct RecomputedBlock {
  size_t first_node = 0, end_node = 0;
};

// Lets the nodes from `forward_nodes` on use copies of the nodes of each block, which are inserted
// before the first use. Blocks are in order and do not overlap. Kept are the values that later
// forward nodes use, and the results of nodes with effects, control nodes and random ops without a
// step. Requires op entries.
Status RecomputeBlocks(Graph* graph, size_t forward_nodes,
                       const std::vector<RecomputedBlock>& blocks);

// ---- to a memory budget -------------------------------------------------------------------------

// One link of a chain: it computes its output from the output of the link before it.
struct ChainLink {
  double seconds = 0;      // of computing it again
  double inner_bytes = 0;  // what its backward nodes need besides its input and output
  double output_bytes = 0;
};
// Links [first, end) are computed again together, from the output of the link before `first`.
struct ChainSegment {
  size_t first = 0, end = 0;
  bool operator==(const ChainSegment&) const = default;
};
struct ChainPlan {
  std::vector<ChainSegment> segments;  // in order; all other links are kept
  double seconds = 0;                  // of all that is computed again
  double peak_bytes = 0;
};
// Returns the plan with the least seconds whose peak is at most `budget_bytes`, each link being
// computed again at most once. The peak: a kept link occupies its inner and output bytes from its
// forward to its backward nodes; a segment occupies the output of its last link, and during its
// backward nodes all bytes of its links. kLimitExceeded, naming the smallest peak there is, if none
// fits.
Result<ChainPlan> PlanChain(std::span<const ChainLink> links, double budget_bytes);

// What to compute again in a graph, and what it costs.
struct RecomputePlan {
  std::vector<RecomputedBlock> blocks;
  ChainPlan chain;
  double kept_bytes = 0;  // the peak if nothing is computed again
  double forward_seconds = 0;
};
// Cuts the forward nodes where a single value passes from those before to those after and plans the
// chain of parts for `budget_bytes`, or for `part` of the bytes that it takes without recomputation
// if that is positive. Times are estimated from costs. Requires concrete types.
Result<RecomputePlan> PlanRecomputation(const Graph& graph, size_t forward_nodes,
                                        double budget_bytes, double part = 0);

// Plans and applies the plan.
Result<ChainPlan> RecomputeToBudget(Graph* graph, size_t forward_nodes, double budget_bytes);

}  // namespace msrt
