// Choices that keep hard limits, near others that need not: what a price leads to is seldom exactly
// within a limit, and one or two nodes changed make good choices of it.
#pragma once

#include <span>
#include <vector>

#include "core/solve/choice.h"

namespace msrt {

// Changes the choices of single nodes, those that cost least for what they save first, until the
// limits are kept; then whatever is cheaper and still fits. `uses` has, for each limit, a use for
// each choice in units of the limit. May fail, and return choices that do not keep the limits.
std::vector<uint32_t> FitToCaps(const ChoiceGraph& graph, std::span<const double> node_costs,
                                std::span<const std::vector<double>> uses,
                                std::vector<uint32_t> choices, SolveCounts* counts);

}  // namespace msrt
