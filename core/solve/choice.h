// Choices with pairwise costs: every node of a graph takes one of its choices, and the solver finds
// the choices that minimise
//   sum over nodes of cost(choice) + sum over edges of cost(choice, choice)
// under hard limits on the total use of resources. Placement, layouts, algorithms and parallel
// strategies are all this problem.
//
// How it is solved: exact reductions (reduction.h, tighten.h) finish whatever has treewidth 2 or
// less in time linear in the nodes; the rest is eliminated exactly if its tables fit
// (elimination.h), otherwise searched with bounds (relaxed.h); limits are priced and then branched
// on (capped.h). The solution says whether it is proven optimal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "core/solve/choice_graph.h"

namespace msrt {

// A hard limit: the summed use of the nodes' choices must not exceed it.
struct ChoiceCap {
  double limit;
  std::vector<std::pair<uint32_t, std::vector<double>>> uses;  // node, use by choice
};

class ChoiceProblem {
 public:
  // Adds a node with one cost per choice, at least one; returns its number, counted from 0. Costs
  // may be negative. kForbidden, NaN, and any cost of magnitude above kMaxCost forbid the choice.
  uint32_t AddNode(std::span<const double> costs);
  // Adds to the costs of a node, one number per choice.
  void AddCosts(uint32_t node, std::span<const double> costs);
  // Adds the costs of pairs, one row for each choice of `a`. Requires two different nodes and a
  // complete table.
  // Several edges between the same nodes add up. kForbidden forbids the pair.
  void AddEdge(uint32_t a, uint32_t b, std::span<const double> costs);
  // sum of use(choice) <= limit. A use that is negative or NaN forbids its choice; a limit below
  // zero cannot be kept.
  void AddCap(double limit, std::vector<std::pair<uint32_t, std::vector<double>>> uses);

  const ChoiceGraph& graph() const { return graph_; }
  std::span<const ChoiceCap> caps() const { return caps_; }

 private:
  ChoiceGraph graph_;
  std::vector<ChoiceCap> caps_;
};

// Budgets that bound the time: the first reductions are polynomial, and all work beyond them is
// counted against one of the three.
struct SolveOptions {
  size_t max_table_cells = size_t{1} << 27;  // computed by all eliminations together; about 0.2 s
  int64_t max_branches = 4096;               // subproblems solved for limits and for conditioning
  int64_t max_search_cells = int64_t{1} << 27;  // visited by these subproblems; about 0.5 s
};

// How often each rule applied, over all subproblems.
struct SolveCounts {
  int64_t single_choice = 0, degree_zero = 0, degree_one = 0, degree_two = 0;  // nodes removed
  int64_t impossible_choices = 0;           // every partner choice was forbidden
  int64_t dead_end_choices = 0;             // another choice is never worse
  int64_t separable_edges = 0;              // costs moved to the nodes
  int64_t eliminated = 0, table_cells = 0;  // nodes of cores, and the cells computed
  int64_t conditioned = 0;                  // subproblems with one choice fixed
  int64_t bounded = 0;                      // cores whose bound was raised by dual ascent
  int64_t cells = 0;                        // visited by all rules but eliminations
  int64_t priced = 0;                       // solves with prices on the limits
  int64_t split = 0;                        // subproblems of the search under limits
};

struct ChoiceSolution {
  std::vector<uint32_t> choices;  // by node; empty unless feasible
  double cost = kForbidden;       // of these choices, summed from the problem's own numbers
  double lower_bound = 0;         // no allowed choices cost less
  bool optimal = false;           // proven least, up to rounding: lower_bound == cost
  // True if choices that keep all limits were found. If not, a lower_bound of kForbidden proves
  // that there are none; anything less means that the options did not suffice to decide.
  bool feasible = false;
  SolveCounts counts;
};

// Deterministic. `start`: choices of the first nodes, if some are known; the best choices of the
// other nodes complete them. If the result is allowed, the solution costs no more, and only cheaper
// choices are searched for.
ChoiceSolution Solve(const ChoiceProblem& problem, const SolveOptions& options = {},
                     std::span<const uint32_t> start = {});

}  // namespace msrt
