// Repairs choices that exceed hard limits. The choices that prices lead to rarely fit a limit
// exactly, and changing one or two nodes makes good choices of them.
#pragma once

#include <span>
#include <vector>

#include "core/solve/choice.h"

namespace msrt {

// Changes the choices of single nodes, in the order of cost per saving, until the limits are kept;
// then makes every single change that is cheaper and still fits. `uses` has, for each limit, a use
// for each choice in units of the limit. May fail and return choices that do not keep the limits.
std::vector<uint32_t> FitToCaps(const ChoiceGraph& graph, std::span<const double> node_costs,
                                std::span<const std::vector<double>> uses,
                                std::vector<uint32_t> choices, SolveCounts* counts);

}  // namespace msrt
