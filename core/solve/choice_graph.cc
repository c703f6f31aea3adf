#include "core/solve/choice_graph.h"

#include <algorithm>
#include <cmath>

namespace msrt {

double CostOf(const ChoiceGraph& graph, std::span<const uint32_t> choices) {
  double cost = 0;
  for (uint32_t v = 0; v < graph.node_count(); ++v) cost += graph.costs(v)[choices[v]];
  for (const ChoiceGraph::Edge& edge : graph.edges) {
    cost += graph.table(edge)[choices[edge.a] * graph.choice_count(edge.b) + choices[edge.b]];
  }
  return cost;
}

double MagnitudeOf(const ChoiceGraph& graph) {
  const auto largest = [](std::span<const double> costs) {
    double result = 0;
    for (double cost : costs)
      result = cost == kForbidden ? result : std::max(result, std::abs(cost));
    return result;
  };
  double sum = 0;
  for (uint32_t v = 0; v < graph.node_count(); ++v) sum += largest(graph.costs(v));
  for (const ChoiceGraph::Edge& edge : graph.edges) {
    sum += largest({graph.table(edge), graph.choice_count(edge.a) * graph.choice_count(edge.b)});
  }
  return sum;
}

Rounding::Rounding(const ChoiceGraph& graph) {
  // The positive costs add up to no more than the sum plus the magnitude of the negative ones.
  const auto least = [](std::span<const double> costs) {
    return std::min(0.0, *std::min_element(costs.begin(), costs.end()));
  };
  double below = 0;
  for (uint32_t v = 0; v < graph.node_count(); ++v) below -= least(graph.costs(v));
  for (const ChoiceGraph::Edge& edge : graph.edges) {
    below -= least({graph.table(edge), graph.choice_count(edge.a) * graph.choice_count(edge.b)});
  }
  below_zero_ = 2 * below;
}

Incidence::Incidence(const ChoiceGraph& graph)
    : first_(graph.node_count() + 1, 0), edges_(2 * graph.edges.size() + 1) {
  for (const ChoiceGraph::Edge& edge : graph.edges) ++first_[edge.a], ++first_[edge.b];
  size_t sum = 0;
  for (size_t& first : first_) sum += first, first = sum;
  for (uint32_t e = static_cast<uint32_t>(graph.edges.size()); e-- > 0;) {
    edges_[--first_[graph.edges[e].a]] = e;
    edges_[--first_[graph.edges[e].b]] = e;
  }
}

void ComputeConditionalCosts(const ChoiceGraph& graph, std::span<const double> node_costs,
                             const Incidence& incidence, uint32_t node,
                             std::span<const uint32_t> choices, double forbidden_cost,
                             std::vector<double>* costs) {
  const auto own = node_costs.subspan(graph.first_choice[node], graph.choice_count(node));
  costs->assign(own.begin(), own.end());
  for (uint32_t e : incidence.edges(node)) {
    const ChoiceGraph::Edge& edge = graph.edges[e];
    const size_t columns = graph.choice_count(edge.b);
    const double* from =
        graph.table(edge) + (edge.a == node ? choices[edge.b] : choices[edge.a] * columns);
    const size_t step = edge.a == node ? columns : 1;
    for (size_t x = 0; x < costs->size(); ++x)
      (*costs)[x] += std::min(from[x * step], forbidden_cost);
  }
}

}  // namespace msrt
