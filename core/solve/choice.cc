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

void ChoiceProblem::AddCap(double limit, std::vector<std::pair<uint32_t, std::vector<double>>> uses) {
  for (const auto& [node, use] : uses) MSRT_CHECK(node < graph_.node_count() && use.size() == graph_.choice_count(node));
  caps_.push_back({limit, std::move(uses)});
}

ChoiceSolution Solve(const ChoiceProblem& problem, const SolveOptions& options) {
  SolveBudget budget{options.max_table_cells, options.max_branches, options.max_search_cells};
  ChoiceSolution solution;
  const Rounding rounding(problem.graph());
  RelaxedSolution found = SolveCapped(problem, rounding, &budget, &solution.counts);
  solution.lower_bound = found.lower_bound;
  if (found.choices.empty() && problem.graph().node_count() > 0) return solution;
  solution.feasible = found.cost != kForbidden;
  if (!solution.feasible) return solution;
  solution.choices = std::move(found.choices);
  solution.cost = CostOf(problem.graph(), solution.choices);
  solution.optimal = solution.lower_bound >= solution.cost - rounding.At(solution.cost);
  if (solution.optimal || solution.lower_bound > solution.cost) solution.lower_bound = solution.cost;
  return solution;
}

}  // namespace msrt
