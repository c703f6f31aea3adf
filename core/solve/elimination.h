// Bucket elimination: nodes are removed one after the other, each leaving a table over its
// neighbours. Exact for every graph; the cost is the tables, which the order decides.
#pragma once

#include <optional>
#include <vector>

#include "core/solve/choice_graph.h"

namespace msrt {

struct EliminationOrder {
  std::vector<uint32_t> nodes;
  size_t cells = 0;  // computed on the way, over all tables
};

// The greedy order of least table, or nothing if that computes more than max_cells. Requires at
// most one edge between two nodes.
std::optional<EliminationOrder> PlanElimination(const ChoiceGraph& graph, size_t max_cells);

// The best choices; empty if none are allowed. Memory: order.cells divided by the choices of a
// node, at most.
std::vector<uint32_t> Eliminate(const ChoiceGraph& graph, const EliminationOrder& order);

}  // namespace msrt
