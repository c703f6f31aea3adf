// Hard limits on top of the relaxed solver. What is limited gets a price (a Lagrangian multiplier);
// the prices that give the highest bound give good choices too, and the gap that remains is closed
// by branch and bound on single choices.
#pragma once

#include "core/solve/choice.h"
#include "core/solve/relaxed.h"

namespace msrt {

// Exact as far as the budget goes. `known`: choices to do better than; ignored where they are
// forbidden.
RelaxedSolution SolveCapped(const ChoiceProblem& problem, const Rounding& rounding,
                            RelaxedSolution known, SolveBudget* budget, SolveCounts* counts);

}  // namespace msrt
