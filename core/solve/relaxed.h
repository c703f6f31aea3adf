// The solver without limits: reductions, then elimination, then conditioning on hubs with bounds,
// as far as the budget goes.
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "core/solve/choice.h"

namespace msrt {

// The remaining budget of one Solve, shared by all its stages.
struct SolveBudget {
  size_t table_cells;
  int64_t branches;
  int64_t search_cells;
  // A value of SolveCounts::cells; set when the first reductions are done.
  int64_t search_end = std::numeric_limits<int64_t>::max();

  bool spent(const SolveCounts& counts) const {
    return branches <= 0 || counts.cells >= search_end;
  }
};

struct RelaxedSolution {
  std::vector<uint32_t> choices;  // empty: none found
  double cost = kForbidden;
  double lower_bound = kForbidden;
};

class RelaxedSolver {
 public:
  // Keeps references to all three.
  RelaxedSolver(const Rounding& rounding, SolveBudget* budget, SolveCounts* counts)
      : rounding_(rounding), budget_(budget), counts_(counts) {}

  // `node_costs` replaces graph.node_costs. Only choices cheaper than `cutoff` are of interest: a
  // bound that reaches it ends the search. The cost is summed in the order of the reductions.
  RelaxedSolution Solve(const ChoiceGraph& graph, std::span<const double> node_costs,
                        double cutoff) {
    return SolveReduced(graph, node_costs, cutoff, {});
  }

 private:
  // The depth of conditioning and the memory of the cores above.
  struct Depth {
    int levels = 0;
    size_t held_cells = 0;
    double outside = 0;  // the cost that has moved out of the core
  };
  // A bound of at least this proves that the core contains nothing better than the goal.
  double PruningBound(double goal, const Depth& depth) const {
    return goal == kForbidden ? goal : goal - rounding_.At(goal + depth.outside);
  }
  RelaxedSolution SolveReduced(const ChoiceGraph& graph, std::span<const double> node_costs,
                               double cutoff, Depth depth);
  RelaxedSolution SolveCore(ChoiceGraph* core, double cutoff, Depth depth);
  void ConditionOnHub(const ChoiceGraph& core, double cutoff, Depth depth,
                      RelaxedSolution* solution);

  const Rounding& rounding_;
  SolveBudget* budget_;
  SolveCounts* counts_;
};

}  // namespace msrt
