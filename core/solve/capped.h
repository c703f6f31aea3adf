// Hard limits on top of the relaxed solver. Each limited resource gets a price (a Lagrangian
// multiplier). The prices with the highest bound lead to good choices too, and branch and bound on
// single choices closes the remaining gap.
#pragma once

#include "core/solve/choice.h"
#include "core/solve/relaxed.h"

namespace msrt {

// Exact as far as the budget goes. `known`: choices to improve on; ignored if they are forbidden.
RelaxedSolution SolveCapped(const ChoiceProblem& problem, const Rounding& rounding,
                            RelaxedSolution known, SolveBudget* budget, SolveCounts* counts);

}  // namespace msrt
