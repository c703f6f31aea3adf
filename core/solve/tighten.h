// Exact rules that make a core smaller without removing nodes: choices that no partner allows,
// choices that another one dominates (Goldstein's dead-end elimination), and edges whose costs
// separate into costs of their two ends.
#pragma once

#include "core/solve/choice.h"

namespace msrt {

// Marks choices as kForbidden in the node costs and drops edges. Returns true if that leaves
// something to reduce: a forbidden choice or a dropped edge. If not, every edge table is
// non-negative with a zero in each row and column, so that the sum of the nodes' least costs is a
// bound. `dead_ends` also looks for dominated choices, in a bounded number of rounds.
bool Tighten(ChoiceGraph* graph, bool dead_ends, SolveCounts* counts);

}  // namespace msrt
