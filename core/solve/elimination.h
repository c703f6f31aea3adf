// Bucket elimination: nodes are removed one after the other, each leaving a table over its
// neighbours. Exact for every graph. The order determines the size of the tables, and so the cost.
#pragma once

#include <optional>
#include <vector>

#include "core/solve/choice_graph.h"

namespace msrt {

struct EliminationOrder {
  std::vector<uint32_t> nodes;
  size_t cells = 0;  // total over all tables
};

// Returns the order that greedily removes the node with the smallest table, or nullopt if that
// computes more than max_cells. Requires at most one edge between two nodes.
std::optional<EliminationOrder> PlanElimination(const ChoiceGraph& graph, size_t max_cells);

// Returns the best choices; empty if none are allowed. Uses at most the memory of order.cells
// divided by the choices of a node.
std::vector<uint32_t> Eliminate(const ChoiceGraph& graph, const EliminationOrder& order);

}  // namespace msrt
