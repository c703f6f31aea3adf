#include "core/solve/capped.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "core/solve/fit.h"

namespace msrt {
namespace {

// Uses are stored in units of their limit; sums of them in another order differ by less.
constexpr double kUseRounding = 1e-12;
constexpr int kRootPrices = 48, kBranchPrices = 6;
// Prices above this many times the magnitude of all costs say nothing that smaller ones do not.
constexpr double kHighestPrice = 1e8, kPriceGrowth = 30;
// A direction of prices with less than this fraction of the whole excess is not worth following.
constexpr double kLevel = 1e-9;

// The limits in a form for computing: one use for each choice of every node, in units of the limit.
struct ScaledCaps {
  std::vector<std::vector<double>> uses;  // by limit; each indexed as graph.node_costs
  bool feasible = true;
};

// Drops limits without effect and forbids choices that can never fit, in node_costs.
ScaledCaps Scale(const ChoiceProblem& problem, std::vector<double>* node_costs) {
  ScaledCaps scaled;
  for (const ChoiceCap& cap : problem.caps()) {
    if (!(cap.limit >= 0)) scaled.feasible = false;
    std::vector<double> uses(node_costs->size(), 0);
    for (const auto& [node, by_choice] : cap.uses) {
      for (size_t x = 0; x < by_choice.size(); ++x) {
        const size_t at = problem.graph().first_choice[node] + x;
        if (!(by_choice[x] >= 0 && by_choice[x] <= cap.limit) || by_choice[x] == kForbidden)
          (*node_costs)[at] = kForbidden;
        else if (by_choice[x] > 0) uses[at] += by_choice[x] / cap.limit;
      }
    }
    if (cap.limit > 0 && cap.limit != kForbidden) scaled.uses.push_back(std::move(uses));
  }
  return scaled;
}

// Sums the caller's own numbers in the caller's order, so that the caller finds the same choices
// allowed.
bool KeepsCaps(const ChoiceProblem& problem, std::span<const uint32_t> choices) {
  for (const ChoiceCap& cap : problem.caps()) {
    double sum = 0;
    for (const auto& [node, by_choice] : cap.uses) {
      const double use = by_choice[choices[node]];
      if (!(use >= 0)) return false;
      sum += use;
    }
    if (!(sum <= cap.limit)) return false;
  }
  return true;
}

// The choices that some prices led to: their cost without prices, and by how much they exceed (or
// undershoot) each limit.
struct Point {
  std::vector<uint32_t> choices;
  double cost = kForbidden;
  std::vector<double> excess;
  bool allowed = false;
};

class CappedSearch {
 public:
  CappedSearch(const ChoiceProblem& problem, const Rounding& rounding, RelaxedSolution known,
               SolveBudget* budget, SolveCounts* counts)
      : problem_(problem),
        graph_(problem.graph()),
        rounding_(rounding),
        magnitude_(MagnitudeOf(graph_)),
        budget_(budget),
        counts_(counts),
        root_costs_(graph_.node_costs),
        caps_(Scale(problem, &root_costs_)),
        best_(std::move(known)) {}

  RelaxedSolution Run() {
    if (!caps_.feasible) return {};
    subproblems_.push_back(
        {kNoParent, 0, 0, false, -kForbidden, std::vector<double>(caps_.uses.size(), 0)});
    Examine(0);
    double open_bound = kForbidden;
    while (!open_.empty()) {
      const auto [bound, index] = open_.top();
      if (bound >= Goal()) break;
      if (budget_->spent(*counts_)) {
        open_bound = bound;
        break;
      }
      open_.pop();
      Split(index);
    }
    best_.lower_bound = std::min(open_bound, best_.cost);
    return std::move(best_);
  }

 private:
  static constexpr size_t kNoParent = ~size_t{0};
  // One node of the search tree: its parent with a choice of a node kept (all others forbidden) or
  // forbidden.
  struct Subproblem {
    size_t parent;
    uint32_t node, choice;
    bool keep;
    double bound;
    std::vector<double> prices;
    uint32_t split_node = 0, split_choice = 0;
  };
  // The state of raising one subproblem's bound.
  struct Ascent {
    std::vector<double> costs;  // as graph.node_costs, with this subproblem's forbidden choices
    double bound;
    std::vector<double> prices;  // at which the bound was reached
    Point within, beyond;        // the latest that keep, and do not keep, the limits
    bool closed = false;         // proven to contain nothing better than the best
  };

  // A bound of at least this proves that a subproblem contains nothing better. While nothing is
  // found, it is more than any choices cost.
  double Goal() const {
    return best_.choices.empty() ? magnitude_ + 2 * rounding_.At(magnitude_)
                                 : best_.cost - rounding_.At(best_.cost);
  }

  // Computes the node costs of a subproblem; false if the limits allow no choices.
  bool NodeCosts(size_t index, std::vector<double>* costs) const {
    *costs = root_costs_;
    for (; index != kNoParent; index = subproblems_[index].parent) {
      const Subproblem& sub = subproblems_[index];
      if (sub.parent == kNoParent) break;
      const size_t first = graph_.first_choice[sub.node];
      for (size_t x = 0; x < graph_.choice_count(sub.node); ++x) {
        if ((x == sub.choice) != sub.keep) (*costs)[first + x] = kForbidden;
      }
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (const std::vector<double>& uses : caps_.uses) {
        if (!ForbidWhatCannotFit(uses, costs, &changed)) return false;
      }
    }
    return true;
  }

  // A choice must fit together with the least use of all other nodes.
  bool ForbidWhatCannotFit(const std::vector<double>& uses, std::vector<double>* costs,
                           bool* changed) const {
    std::vector<double> least(graph_.node_count(), kForbidden);
    double sum = 0;
    for (uint32_t v = 0; v < graph_.node_count(); ++v) {
      for (size_t x = graph_.first_choice[v]; x < graph_.first_choice[v + 1]; ++x) {
        if ((*costs)[x] != kForbidden) least[v] = std::min(least[v], uses[x]);
      }
      sum += least[v];
    }
    const double slack = 1 + kUseRounding - sum;
    if (!(slack >= 0)) return false;
    for (uint32_t v = 0; v < graph_.node_count(); ++v) {
      for (size_t x = graph_.first_choice[v]; x < graph_.first_choice[v + 1]; ++x) {
        if ((*costs)[x] == kForbidden || uses[x] - least[v] <= slack) continue;
        (*costs)[x] = kForbidden;
        *changed = true;
      }
    }
    return true;
  }

  // Solves with prices on the limited resources. Raises the ascent's bound and keeps the choices
  // found. Returns them; empty if there are none.
  Point TryPrices(std::span<const double> prices, Ascent* ascent) {
    --budget_->branches;
    ++counts_->priced;
    std::vector<double> costs = ascent->costs;
    double paid_back = 0;
    for (size_t k = 0; k < prices.size(); ++k) {
      if (prices[k] == 0) continue;
      for (size_t x = 0; x < costs.size(); ++x) costs[x] += prices[k] * caps_.uses[k][x];
      paid_back += prices[k];
    }
    const double goal = Goal() + paid_back;
    RelaxedSolver solver(rounding_, budget_, counts_);
    RelaxedSolution found = solver.Solve(graph_, costs, goal + 2 * rounding_.At(goal));
    const double bound = found.lower_bound - paid_back -
                         (paid_back > 0 ? rounding_.At(std::min(found.cost, goal)) : 0);
    if (bound > ascent->bound) {
      ascent->bound = bound;
      ascent->prices.assign(prices.begin(), prices.end());
    }
    Point point;
    if (!found.choices.empty()) point = Weigh(std::move(found.choices));
    if (!point.choices.empty()) (point.allowed ? ascent->within : ascent->beyond) = point;
    ascent->closed = ascent->bound >= Goal();
    return point;
  }

  Point Weigh(std::vector<uint32_t> choices) {
    Point point{std::move(choices), 0, {}, false};
    point.cost = CostOf(graph_, point.choices);
    for (const std::vector<double>& uses : caps_.uses) {
      double sum = 0;
      for (uint32_t v = 0; v < graph_.node_count(); ++v)
        sum += uses[graph_.first_choice[v] + point.choices[v]];
      point.excess.push_back(sum - 1);
    }
    point.allowed = KeepsCaps(problem_, point.choices);
    if (point.allowed && point.cost < best_.cost)
      best_.choices = point.choices, best_.cost = point.cost;
    return point;
  }

  // Two points whose planes bound the search along a line of prices: one rises along it, the other
  // (if there is one) falls.
  struct Bracket {
    Point rising, falling;
  };

  // The bound is concave and piecewise linear along a line of prices, and rises where it starts.
  // The point where the planes of the bracket meet is tried next; each solve there either replaces
  // one of the two or shows that it is the top.
  void RaiseAlong(const std::vector<double>& from, const std::vector<double>& direction, int* tries,
                  Bracket* bracket, Ascent* ascent) {
    const auto slope = [&](const Point& p) {
      return std::inner_product(direction.begin(), direction.end(), p.excess.begin(), 0.0);
    };
    const auto height = [&](const Point& p) {
      return std::inner_product(from.begin(), from.end(), p.excess.begin(), p.cost);
    };
    Point &rising = bracket->rising, &falling = bracket->falling;
    double steepest = 0, end = kForbidden;
    for (size_t k = 0; k < from.size(); ++k) {
      steepest = std::max(steepest, std::abs(direction[k]));
      if (direction[k] < 0) end = std::min(end, from[k] / -direction[k]);
    }
    end = std::min(end, kHighestPrice * magnitude_ / steepest);
    double step = std::min(end, magnitude_ / steepest), reachable = kForbidden;
    while ((*tries)-- > 0 && !ascent->closed && !budget_->spent(*counts_)) {
      std::vector<double> prices = from;
      for (size_t k = 0; k < from.size(); ++k)
        prices[k] = std::max(0.0, from[k] + step * direction[k]);
      Point point = TryPrices(prices, ascent);
      if (point.choices.empty()) return;
      const bool at_top =
          reachable != kForbidden &&
          ascent->bound >= reachable - 2 * rounding_.At(std::abs(reachable) + step * steepest);
      (slope(point) > 0 ? rising : falling) = std::move(point);
      if (at_top || (falling.choices.empty() && step >= end)) return;
      if (falling.choices.empty()) {
        step = std::min(step * kPriceGrowth, end);
      } else {
        step = std::clamp((height(falling) - height(rising)) / (slope(rising) - slope(falling)),
                          0.0, end);
        reachable = height(rising) + step * slope(rising);
      }
    }
  }

  // The mixture of the bracket's two excesses that is level along the line: the direction in which
  // the bound still rises from its top.
  static std::vector<double> LevelExcess(const std::vector<double>& direction,
                                         const Bracket& bracket) {
    std::vector<double> excess = bracket.rising.excess;
    if (bracket.falling.choices.empty()) return excess;
    const std::vector<double>& other = bracket.falling.excess;
    const double up = std::inner_product(direction.begin(), direction.end(), excess.begin(), 0.0);
    const double down = std::inner_product(direction.begin(), direction.end(), other.begin(), 0.0);
    const double part = -down / (up - down);
    for (size_t k = 0; k < excess.size(); ++k) excess[k] = part * excess[k] + (1 - part) * other[k];
    return excess;
  }

  // Follows one line of prices after the other, each in the direction that still rises after the
  // last.
  void RaiseByPrices(Point start, int tries, Ascent* ascent) {
    std::vector<double> direction = start.excess;
    Bracket bracket{std::move(start), {}};
    while (tries > 0 && !ascent->closed && !budget_->spent(*counts_)) {
      const std::vector<double> from = ascent->prices;
      for (size_t k = 0; k < from.size(); ++k) {
        if (from[k] == 0) direction[k] = std::max(direction[k], 0.0);  // no price below zero
      }
      const auto rise = [&](const Point& p) {
        return std::inner_product(direction.begin(), direction.end(), p.excess.begin(), 0.0);
      };
      if (!bracket.falling.choices.empty() && rise(bracket.falling) > rise(bracket.rising))
        std::swap(bracket.rising, bracket.falling);
      const std::vector<double>& excess = bracket.rising.excess;
      const double all = std::inner_product(excess.begin(), excess.end(), excess.begin(), 0.0);
      if (!(rise(bracket.rising) > kLevel * all)) return;
      bracket.falling = {};
      RaiseAlong(from, direction, &tries, &bracket, ascent);
      direction = LevelExcess(direction, bracket);
    }
  }

  // Bounds the subproblem; opens it if it may contain something better than the best.
  void Examine(size_t index) {
    Ascent ascent;
    if (!NodeCosts(index, &ascent.costs)) return;
    const bool root = subproblems_[index].parent == kNoParent;
    ascent.bound = subproblems_[index].bound;
    ascent.prices = subproblems_[index].prices;
    const bool examined = root || !budget_->spent(*counts_);
    if (examined) {
      const Point point = TryPrices(std::vector(ascent.prices), &ascent);
      if (!point.choices.empty()) RaiseByPrices(point, root ? kRootPrices : kBranchPrices, &ascent);
    }
    for (const Point* point : {&ascent.beyond, &ascent.within}) {
      if (ascent.closed || point->choices.empty()) continue;
      Weigh(FitToCaps(graph_, ascent.costs, caps_.uses, point->choices, counts_));
      ascent.closed = ascent.bound >= Goal();
    }
    Subproblem& sub = subproblems_[index];
    sub.bound = ascent.bound;
    sub.prices = ascent.prices;
    // A leaf that was examined is finished. One that was not may contain the best choices, so its
    // bound has to count.
    if (!ascent.closed && (ChooseSplit(ascent, &sub) || !examined)) open_.push({sub.bound, index});
  }

  // Selects the node whose choice matters most to the limits, and the choice to split off. False if
  // every node has one choice.
  bool ChooseSplit(const Ascent& ascent, Subproblem* sub) const {
    double max_weight = -1;
    const std::vector<uint32_t>&beyond = ascent.beyond.choices, &within = ascent.within.choices;
    for (uint32_t v = 0; v < graph_.node_count(); ++v) {
      const size_t first = graph_.first_choice[v], count = graph_.choice_count(v);
      uint32_t allowed = 0, cheapest = 0;
      for (uint32_t x = 0; x < count; ++x) {
        if (ascent.costs[first + x] == kForbidden) continue;
        if (allowed++ == 0 || ascent.costs[first + x] < ascent.costs[first + cheapest])
          cheapest = x;
      }
      if (allowed < 2) continue;
      const uint32_t own = !beyond.empty() ? beyond[v] : !within.empty() ? within[v] : cheapest;
      double weight = 0;
      for (const std::vector<double>& uses : caps_.uses) {
        if (!beyond.empty() && !within.empty()) {
          weight = std::max(weight, std::abs(uses[first + beyond[v]] - uses[first + within[v]]));
        } else {
          for (size_t x = first; x < first + count; ++x) {
            if (ascent.costs[x] != kForbidden)
              weight = std::max(weight, std::abs(uses[x] - uses[first + own]) * 1e-6);
          }
        }
      }
      if (weight > max_weight) max_weight = weight, sub->split_node = v, sub->split_choice = own;
    }
    return max_weight >= 0;
  }

  void Split(size_t parent) {
    for (bool keep : {true, false}) {
      ++counts_->split;
      const Subproblem& from = subproblems_[parent];
      Subproblem child{parent, from.split_node, from.split_choice, keep, from.bound, from.prices};
      subproblems_.push_back(std::move(child));
      Examine(subproblems_.size() - 1);
    }
  }

  const ChoiceProblem& problem_;
  const ChoiceGraph& graph_;
  const Rounding& rounding_;
  double magnitude_;
  SolveBudget* budget_;
  SolveCounts* counts_;
  std::vector<double> root_costs_;
  ScaledCaps caps_;
  RelaxedSolution best_;
  std::vector<Subproblem> subproblems_;
  using Open = std::pair<double, size_t>;
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open_;
};

}  // namespace

RelaxedSolution SolveCapped(const ChoiceProblem& problem, const Rounding& rounding,
                            RelaxedSolution known, SolveBudget* budget, SolveCounts* counts) {
  if (known.choices.empty() || known.cost == kForbidden || !KeepsCaps(problem, known.choices))
    known = {};
  if (!problem.caps().empty())
    return CappedSearch(problem, rounding, std::move(known), budget, counts).Run();
  RelaxedSolution found = RelaxedSolver(rounding, budget, counts)
                              .Solve(problem.graph(), problem.graph().node_costs, known.cost);
  if (known.cost < kForbidden && known.cost <= found.cost) {
    known.lower_bound = std::min(found.lower_bound, known.cost);
    return known;
  }
  return found;
}

}  // namespace msrt
