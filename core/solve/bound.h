// For cores too wide to eliminate: a lower bound by dual ascent (sequential tree-reweighted message
// passing, formulated as moving costs between edges and nodes) and good choices by local search.
#pragma once

#include <vector>

#include "core/solve/choice.h"

namespace msrt {

// Raises the sum of the separate minima by moving costs between edges and nodes, which changes no
// total. Runs at most `sweeps` sweeps and stops early when a sweep gains little. Requires finite
// node costs and a finite cost in each row and column of every edge, as Tighten leaves them.
// Returns the cost that moved out of the graph, to be added to the cost of any choices.
double RaiseBound(ChoiceGraph* graph, int sweeps, SolveCounts* counts);

// The number of times that a sweep passes over each cell of the graph.
inline constexpr int64_t kCellsPerSweep = 6;

// The sum of the least cost of each node and each edge.
double SumOfMinima(const ChoiceGraph& graph);

// Returns choices that no change of a single node improves. Call RaiseBound first: the search
// starts from the choices that its costs favour. The result may be forbidden.
std::vector<uint32_t> SearchLocally(const ChoiceGraph& graph, SolveCounts* counts);

}  // namespace msrt
