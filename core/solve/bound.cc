#include "core/solve/bound.h"

#include <algorithm>

namespace msrt {
namespace {

constexpr int kLocalRounds = 50;
// A sweep that raises the bound by less than this fraction of the total gain is the last.
constexpr double kWorthwhile = 1e-3;

double Least(std::span<const double> costs) {
  return *std::min_element(costs.begin(), costs.end());
}

// Moves the least cost of the edge for each choice of one end (`v`) to that end.
void PullFromEdge(ChoiceGraph* graph, const ChoiceGraph::Edge& edge, uint32_t v,
                  std::vector<double>* least) {
  const size_t rows = graph->choice_count(edge.a), columns = graph->choice_count(edge.b);
  double* table = graph->table(edge);
  const std::span<double> costs = graph->costs(v);
  if (edge.a == v) {
    for (size_t x = 0; x < rows; ++x) {
      double* row = table + x * columns;
      const double m = Least({row, columns});
      costs[x] += m;
      for (size_t y = 0; y < columns; ++y) row[y] -= m;
    }
    return;
  }
  least->assign(table, table + columns);
  for (size_t x = 1; x < rows; ++x) {
    for (size_t y = 0; y < columns; ++y)
      (*least)[y] = std::min((*least)[y], table[x * columns + y]);
  }
  for (size_t x = 0; x < rows; ++x) {
    for (size_t y = 0; y < columns; ++y) table[x * columns + y] -= (*least)[y];
  }
  for (size_t y = 0; y < columns; ++y) costs[y] += (*least)[y];
}

// Adds a part of the node's costs to the edge.
void PushToEdge(ChoiceGraph* graph, const ChoiceGraph::Edge& edge, uint32_t v, double part) {
  const size_t rows = graph->choice_count(edge.a), columns = graph->choice_count(edge.b);
  double* table = graph->table(edge);
  const std::span<const double> costs = graph->costs(v);
  for (size_t x = 0; x < rows; ++x) {
    if (edge.a == v) {
      for (size_t y = 0; y < columns; ++y) table[x * columns + y] += part * costs[x];
    } else {
      for (size_t y = 0; y < columns; ++y) table[x * columns + y] += part * costs[y];
    }
  }
}

// Visits one node of a sweep: pulls the costs from its edges and pushes them to the edges that lead
// onward. Returns the cost that moved out of the graph.
double Visit(ChoiceGraph* graph, const Incidence& incidence, uint32_t v, bool forward,
             std::vector<double>* scratch) {
  size_t later = 0, earlier = 0;
  for (uint32_t e : incidence.edges(v)) {
    const ChoiceGraph::Edge& edge = graph->edges[e];
    PullFromEdge(graph, edge, v, scratch);
    ++((edge.a == v ? edge.b : edge.a) > v ? later : earlier);
  }
  const std::span<double> costs = graph->costs(v);
  const double least = Least(costs);
  for (double& cost : costs) cost -= least;
  const size_t onward = forward ? later : earlier;
  if (onward == 0) return least;
  const double part = 1.0 / static_cast<double>(std::max(later, earlier));
  for (uint32_t e : incidence.edges(v)) {
    const ChoiceGraph::Edge& edge = graph->edges[e];
    if (((edge.a == v ? edge.b : edge.a) > v) == forward) PushToEdge(graph, edge, v, part);
  }
  const double kept = std::max(0.0, 1.0 - part * static_cast<double>(onward));
  for (double& cost : costs) cost *= kept;
  return least;
}

// Chooses for each node in order: the cheapest choice given those of the nodes before it and the
// best that the nodes after it could do.
std::vector<uint32_t> ChooseInOrder(const ChoiceGraph& graph, const Incidence& incidence,
                                    double forbidden_cost) {
  std::vector<uint32_t> choices(graph.node_count());
  std::vector<double> costs;
  for (uint32_t v = 0; v < graph.node_count(); ++v) {
    costs.assign(graph.costs(v).begin(), graph.costs(v).end());
    for (uint32_t e : incidence.edges(v)) {
      const ChoiceGraph::Edge& edge = graph.edges[e];
      const uint32_t u = edge.a == v ? edge.b : edge.a;
      const size_t step = edge.a == v ? graph.choice_count(u) : 1,
                   across = edge.a == v ? 1 : costs.size();
      const size_t first = u < v ? choices[u] : 0, count = u < v ? 1 : graph.choice_count(u);
      for (size_t x = 0; x < costs.size(); ++x) {
        double least = forbidden_cost;
        for (size_t y = first; y < first + count; ++y)
          least = std::min(least, graph.table(edge)[x * step + y * across]);
        costs[x] += least;
      }
    }
    choices[v] =
        static_cast<uint32_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
  }
  return choices;
}

}  // namespace

double SumOfMinima(const ChoiceGraph& graph) {
  double sum = 0;
  for (uint32_t v = 0; v < graph.node_count(); ++v) sum += Least(graph.costs(v));
  for (const ChoiceGraph::Edge& edge : graph.edges) {
    sum += Least({graph.table(edge), graph.choice_count(edge.a) * graph.choice_count(edge.b)});
  }
  return sum;
}

double RaiseBound(ChoiceGraph* graph, int sweeps, SolveCounts* counts) {
  const Incidence incidence(*graph);
  std::vector<double> scratch;
  const double start = SumOfMinima(*graph);
  double moved = 0, bound = start;
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    for (uint32_t v = 0; v < graph->node_count(); ++v)
      moved += Visit(graph, incidence, v, true, &scratch);
    for (uint32_t v = graph->node_count(); v-- > 0;)
      moved += Visit(graph, incidence, v, false, &scratch);
    counts->cells += kCellsPerSweep * static_cast<int64_t>(graph->cells.size());
    const double now = moved + SumOfMinima(*graph);
    const double gained = now - bound;
    bound = now;
    if (gained <= kWorthwhile * (bound - start)) break;
  }
  return moved;
}

std::vector<uint32_t> SearchLocally(const ChoiceGraph& graph, SolveCounts* counts) {
  const Incidence incidence(graph);
  const double magnitude = MagnitudeOf(graph), penalty = magnitude > 0 ? 16 * magnitude : 1;
  std::vector<uint32_t> choices = ChooseInOrder(graph, incidence, penalty);
  counts->cells += 2 * static_cast<int64_t>(graph.cells.size());
  std::vector<double> costs;
  bool changed = true;
  for (int round = 0; changed && round < kLocalRounds; ++round) {
    changed = false;
    counts->cells += static_cast<int64_t>(graph.node_costs.size() + 4 * graph.edges.size());
    for (uint32_t v = 0; v < graph.node_count(); ++v) {
      ComputeConditionalCosts(graph, graph.node_costs, incidence, v, choices, penalty, &costs);
      const auto best = std::min_element(costs.begin(), costs.end());
      if (*best >= costs[choices[v]]) continue;
      choices[v] = static_cast<uint32_t>(best - costs.begin());
      changed = true;
    }
  }
  return choices;
}

}  // namespace msrt
