// For cores too wide to eliminate: a lower bound by dual ascent (sequential tree-reweighted message
// passing, written as moving costs between edges and nodes) and good choices by local search.
#pragma once

#include <vector>

#include "core/solve/choice.h"

namespace msrt {

// Moves costs between edges and nodes, which changes no total, until their separate minima add up
// to as much as `sweeps` sweeps give; stops early where it no longer pays. Requires finite node
// costs and a finite cost in each row and column of every edge, as Tighten leaves them. Returns
// what moved out of the graph altogether, to be added to the cost of any choices.
double RaiseBound(ChoiceGraph* graph, int sweeps, SolveCounts* counts);

// How often a sweep passes over each cell of the graph.
inline constexpr int64_t kCellsASweep = 6;

// The sum of the least cost of each node and each edge.
double SumOfMinima(const ChoiceGraph& graph);

// Choices that no change of a single node improves, begun from what a bound that was raised points
// to; may be forbidden ones.
std::vector<uint32_t> SearchLocally(const ChoiceGraph& graph, SolveCounts* counts);

}  // namespace msrt
