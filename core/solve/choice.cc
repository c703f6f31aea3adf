#include "core/solve/choice.h"

#include <algorithm>
#include <cmath>

#include "core/base/status.h"
#include "core/solve/capped.h"
#include "core/solve/relaxed.h"

namespace msrt {
namespace {

double CostOrForbidden(double cost) { return std::abs(cost) <= kMaxCost ? cost : kForbidden; }

void AppendCosts(std::span<const double> costs, std::vector<double>* out) {
  for (double cost : costs) out->push_back(CostOrForbidden(cost));
}

// Completes the choices of the first nodes with the best choices of the others.
RelaxedSolution CompleteStart(const ChoiceGraph& graph, std::span<const uint32_t> start,
                              const Rounding& rounding, const SolveOptions& options,
                              SolveCounts* counts) {
  MSRT_CHECK(start.size() <= graph.node_count());
  std::vector<double> costs = graph.node_costs;
  for (uint32_t v = 0; v < start.size(); ++v) {
    MSRT_CHECK(start[v] < graph.choice_count(v));
    for (size_t x = 0; x < graph.choice_count(v); ++x) {
      if (x != start[v]) costs[graph.first_choice[v] + x] = kForbidden;
    }
  }
  SolveBudget budget{options.max_table_cells, 0, 0};
  RelaxedSolution found = RelaxedSolver(rounding, &budget, counts).Solve(graph, costs, kForbidden);
  if (!found.choices.empty()) found.cost = CostOf(graph, found.choices);
  return found;
}

}  // namespace

uint32_t ChoiceProblem::AddNode(std::span<const double> costs) {
  MSRT_CHECK(!costs.empty());
  AppendCosts(costs, &graph_.node_costs);
  graph_.first_choice.push_back(graph_.node_costs.size());
  return graph_.node_count() - 1;
}

void ChoiceProblem::AddCosts(uint32_t node, std::span<const double> costs) {
  MSRT_CHECK(node < graph_.node_count() && costs.size() == graph_.choice_count(node));
  const std::span<double> sums = graph_.costs(node);
  for (size_t i = 0; i < costs.size(); ++i) sums[i] = CostOrForbidden(sums[i] + costs[i]);
}

void ChoiceProblem::AddEdge(uint32_t a, uint32_t b, std::span<const double> costs) {
  MSRT_CHECK(a < graph_.node_count() && b < graph_.node_count() && a != b);
  MSRT_CHECK(costs.size() == graph_.choice_count(a) * graph_.choice_count(b));
  graph_.edges.push_back({a, b, graph_.cells.size()});
  AppendCosts(costs, &graph_.cells);
}

void ChoiceProblem::AddCap(double limit,
                           std::vector<std::pair<uint32_t, std::vector<double>>> uses) {
  for (const auto& [node, use] : uses)
    MSRT_CHECK(node < graph_.node_count() && use.size() == graph_.choice_count(node));
  caps_.push_back({limit, std::move(uses)});
}

ChoiceSolution Solve(const ChoiceProblem& problem, const SolveOptions& options,
                     std::span<const uint32_t> start) {
  SolveBudget budget{options.max_table_cells, options.max_branches, options.max_search_cells};
  ChoiceSolution solution;
  const Rounding rounding(problem.graph());
  RelaxedSolution known;
  if (!start.empty())
    known = CompleteStart(problem.graph(), start, rounding, options, &solution.counts);
  RelaxedSolution found =
      SolveCapped(problem, rounding, std::move(known), &budget, &solution.counts);
  solution.lower_bound = found.lower_bound;
  if (found.choices.empty() && problem.graph().node_count() > 0) return solution;
  solution.feasible = found.cost != kForbidden;
  if (!solution.feasible) return solution;
  solution.choices = std::move(found.choices);
  solution.cost = CostOf(problem.graph(), solution.choices);
  solution.optimal = solution.lower_bound >= solution.cost - rounding.At(solution.cost);
  if (solution.optimal || solution.lower_bound > solution.cost)
    solution.lower_bound = solution.cost;
  return solution;
}

}  // namespace msrt
