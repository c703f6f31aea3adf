// The graph of a choice problem in flat arrays, which the solver's stages pass to each other.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace msrt {

inline constexpr double kForbidden = std::numeric_limits<double>::infinity();
// Small enough that sums of costs never overflow to kForbidden.
inline constexpr double kMaxCost = 1e100;

struct ChoiceGraph {
  struct Edge {
    uint32_t a, b;
    size_t first_cell;  // index in `cells`; one row for each choice of a
  };
  // By node: its first index in node_costs. One more element than there are nodes.
  std::vector<size_t> first_choice{0};
  std::vector<double> node_costs;
  std::vector<Edge> edges;
  std::vector<double> cells;

  uint32_t node_count() const { return static_cast<uint32_t>(first_choice.size() - 1); }
  size_t choice_count(uint32_t node) const { return first_choice[node + 1] - first_choice[node]; }
  std::span<const double> costs(uint32_t node) const {
    return {&node_costs[first_choice[node]], choice_count(node)};
  }
  std::span<double> costs(uint32_t node) {
    return {&node_costs[first_choice[node]], choice_count(node)};
  }
  const double* table(const Edge& edge) const { return &cells[edge.first_cell]; }
  double* table(const Edge& edge) { return &cells[edge.first_cell]; }
};

double CostOf(const ChoiceGraph& graph, std::span<const uint32_t> choices);

// The sum over nodes and edges of the largest finite cost, in magnitude: no allowed choices cost
// more.
double MagnitudeOf(const ChoiceGraph& graph);

// The tolerance for sums of the same costs in another order. It is relative to the cost of the
// choices themselves: relative to the magnitude of all costs, one extremely expensive choice would
// hide every difference between the others.
class Rounding {
 public:
  explicit Rounding(const ChoiceGraph& graph);
  // A difference up to this from `cost`, the sum of some choices, proves nothing.
  double At(double cost) const { return 1e-12 * (std::abs(cost) + below_zero_); }

 private:
  // The maximum by which the magnitudes of some choices' costs exceed the magnitude of their sum.
  double below_zero_;
};

// The edges of each node.
class Incidence {
 public:
  explicit Incidence(const ChoiceGraph& graph);
  std::span<const uint32_t> edges(uint32_t node) const {
    return {&edges_[first_[node]], first_[node + 1] - first_[node]};
  }

 private:
  std::vector<size_t> first_;
  std::vector<uint32_t> edges_;
};

// Computes the cost of each choice of a node given the choices of its neighbours. `node_costs`
// replaces graph.node_costs. A forbidden pair counts `forbidden_cost`.
void ComputeConditionalCosts(const ChoiceGraph& graph, std::span<const double> node_costs,
                             const Incidence& incidence, uint32_t node,
                             std::span<const uint32_t> choices, double forbidden_cost,
                             std::vector<double>* costs);

}  // namespace msrt
