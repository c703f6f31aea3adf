// The graph of a choice problem in flat arrays: what the solver's stages hand to each other.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace msrt {

inline constexpr double kForbidden = std::numeric_limits<double>::infinity();
// Far from where sums of costs would overflow and forbid what was only dear.
inline constexpr double kMaxCost = 1e100;

struct ChoiceGraph {
  struct Edge {
    uint32_t a, b;
    size_t first_cell;  // in cells: a row for each choice of a
  };
  std::vector<size_t> first_choice{
      0};  // node -> place in node_costs; one more than there are nodes
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

// Sums of the same costs in another order differ by less. It is measured by what choices cost
// themselves: by the magnitude of all that might be chosen, one absurdly dear choice would hide
// every difference between the others.
class Rounding {
 public:
  explicit Rounding(const ChoiceGraph& graph);
  // The difference from a cost, the sum of some choices, that proves nothing.
  double At(double cost) const { return 1e-12 * (std::abs(cost) + below_zero_); }

 private:
  double
      below_zero_;  // how much larger than their sum the costs of some choices can be, in magnitude
};

// For each node the edges that it has.
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

// What each choice of a node costs beside the choices of its neighbours. `node_costs` stands in for
// graph.node_costs. A forbidden pair counts `forbidden_cost`.
void CostsBeside(const ChoiceGraph& graph, std::span<const double> node_costs,
                 const Incidence& incidence, uint32_t node, std::span<const uint32_t> choices,
                 double forbidden_cost, std::vector<double>* costs);

}  // namespace msrt
