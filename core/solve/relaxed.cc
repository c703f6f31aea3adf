#include "core/solve/relaxed.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <optional>
#include <utility>

#include "core/solve/bound.h"
#include "core/solve/elimination.h"
#include "core/solve/reduction.h"
#include "core/solve/tighten.h"

namespace msrt {
namespace {

// After this many turns of reductions and tightening, dead ends are rare; only the cheap rules then
// run to their end.
constexpr size_t kDeadEndTurns = 4;
constexpr int kRootSweeps = 64, kBranchSweeps = 16;
// Conditioning keeps a core for every level: these fit a thread's stack and half a gigabyte.
constexpr int kMaxLevels = 256;
constexpr size_t kMaxHeldCells = size_t{1} << 26;

uint32_t HighestDegree(const ChoiceGraph& graph) {
  const Incidence incidence(graph);
  uint32_t hub = 0;
  for (uint32_t v = 1; v < graph.node_count(); ++v) {
    if (incidence.edges(v).size() > incidence.edges(hub).size()) hub = v;
  }
  return hub;
}

void Adopt(RelaxedSolution* best, std::vector<uint32_t> choices, double cost) {
  if (choices.empty() || cost >= best->cost) return;
  best->choices = std::move(choices);
  best->cost = cost;
}

}  // namespace

RelaxedSolution RelaxedSolver::SolveReduced(const ChoiceGraph& graph,
                                            std::span<const double> node_costs, double cutoff,
                                            Depth depth) {
  std::deque<ChoiceGraph> cores;  // the next turn reads the tables
  std::vector<Reduction> turns;
  double base = 0;
  for (bool tightened = true; tightened;) {
    if (turns.empty()) turns.emplace_back(graph, node_costs, counts_);
    else turns.emplace_back(cores.back(), cores.back().node_costs, counts_);
    if (!turns.back().feasible()) return {};
    base += turns.back().base();
    cores.push_back(turns.back().Core());
    tightened = cores.back().node_count() > 0 &&
                Tighten(&cores.back(), turns.size() <= kDeadEndTurns, counts_);
  }
  if (budget_->search_end == std::numeric_limits<int64_t>::max())
    budget_->search_end = counts_->cells + budget_->search_cells;
  depth.outside += base;
  RelaxedSolution solution = SolveCore(&cores.back(), cutoff - base, depth);
  solution.cost += base;
  solution.lower_bound = std::min(solution.lower_bound + base, solution.cost);
  if (solution.cost == kForbidden) return solution;
  for (size_t t = turns.size(); t-- > 0;) solution.choices = turns[t].Lift(solution.choices);
  return solution;
}

RelaxedSolution RelaxedSolver::SolveCore(ChoiceGraph* core, double cutoff, Depth depth) {
  RelaxedSolution solution;
  if (core->node_count() == 0) {
    solution.cost = solution.lower_bound = 0;
    return solution;
  }
  if (const double bound = SumOfMinima(*core); bound >= PruningBound(cutoff, depth)) {
    solution.lower_bound = bound;
    return solution;
  }
  if (const std::optional<EliminationOrder> order = PlanElimination(*core, budget_->table_cells)) {
    budget_->table_cells -= order->cells;
    counts_->eliminated += core->node_count();
    counts_->table_cells += static_cast<int64_t>(order->cells);
    solution.choices = Eliminate(*core, *order);
    if (!solution.choices.empty())
      solution.cost = solution.lower_bound = CostOf(*core, solution.choices);
    return solution;
  }
  ++counts_->bounded;
  // At least one sweep, and at most half of the remaining budget: the rest is for branching.
  const int64_t affordable = (budget_->search_end - counts_->cells) / 2 /
                             (kCellsPerSweep * static_cast<int64_t>(core->cells.size()));
  const int sweeps = static_cast<int>(
      std::clamp<int64_t>(affordable, 1, depth.levels == 0 ? kRootSweeps : kBranchSweeps));
  const double moved = RaiseBound(core, sweeps, counts_);
  solution.lower_bound = SumOfMinima(*core);
  std::vector<uint32_t> found = SearchLocally(*core, counts_);
  const double cost = CostOf(*core, found);
  Adopt(&solution, std::move(found), cost);
  depth.outside += moved;
  ConditionOnHub(*core, cutoff - moved, depth, &solution);
  solution.cost += moved;
  solution.lower_bound += moved;
  return solution;
}

void RelaxedSolver::ConditionOnHub(const ChoiceGraph& core, double cutoff, Depth depth,
                                   RelaxedSolution* solution) {
  depth.held_cells += core.cells.size();
  if (++depth.levels > kMaxLevels || depth.held_cells > kMaxHeldCells) return;
  const uint32_t hub = HighestDegree(core);
  const std::span<const double> hub_costs = core.costs(hub);
  std::vector<uint32_t> order(hub_costs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t x, uint32_t y) { return hub_costs[x] < hub_costs[y]; });
  const double bound = solution->lower_bound, hub_least = hub_costs[order[0]];
  double least = kForbidden;  // over the hub's choices
  std::vector<double> node_costs;
  for (uint32_t x : order) {
    const double goal = std::min(cutoff, solution->cost);
    double child_bound = bound + hub_costs[x] - hub_least;
    if (child_bound < PruningBound(goal, depth) && !budget_->spent(*counts_)) {
      --budget_->branches;
      ++counts_->conditioned;
      node_costs = core.node_costs;
      for (size_t y = 0; y < hub_costs.size(); ++y) {
        if (y != x) node_costs[core.first_choice[hub] + y] = kForbidden;
      }
      RelaxedSolution child = SolveReduced(core, node_costs, goal, depth);
      child_bound = std::max(child_bound, child.lower_bound);
      Adopt(solution, std::move(child.choices), child.cost);
    }
    least = std::min(least, child_bound);
  }
  solution->lower_bound = std::min(std::max(bound, least), solution->cost);
}

}  // namespace msrt
