#include "core/solve/elimination.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "core/solve/min_plus.h"

namespace msrt {
namespace {

// The graph's structure while nodes leave it.
class Shrinking {
 public:
  explicit Shrinking(const ChoiceGraph& graph) : graph_(graph), neighbours_(graph.node_count()), seen_(graph.node_count(), 0) {
    for (const ChoiceGraph::Edge& edge : graph.edges) {
      neighbours_[edge.a].push_back(edge.b);
      neighbours_[edge.b].push_back(edge.a);
    }
  }
  const std::vector<uint32_t>& neighbours(uint32_t v) const { return neighbours_[v]; }

  // The cells that removing the node computes now. A product too large for a double is infinite, which orders it rightly.
  double Weight(uint32_t v) const {
    double weight = static_cast<double>(graph_.choice_count(v));
    for (uint32_t u : neighbours_[v]) weight *= static_cast<double>(graph_.choice_count(u));
    return weight;
  }

  // Its neighbours become neighbours of each other.
  void Remove(uint32_t v) {
    const std::vector<uint32_t> around = std::move(neighbours_[v]);
    for (uint32_t u : around) {
      std::vector<uint32_t>& of_u = neighbours_[u];
      of_u.erase(std::find(of_u.begin(), of_u.end(), v));
      ++stamp_;
      seen_[u] = stamp_;
      for (uint32_t t : of_u) seen_[t] = stamp_;
      for (uint32_t t : around) {
        if (seen_[t] != stamp_) of_u.push_back(t);
      }
    }
    neighbours_[v] = around;
  }

 private:
  const ChoiceGraph& graph_;
  std::vector<std::vector<uint32_t>> neighbours_;
  std::vector<uint64_t> seen_;
  uint64_t stamp_ = 0;
};

// A table over nodes, ordered by when they are eliminated: the first is the one in whose bucket it lies (its slowest dimension).
struct Factor {
  std::vector<uint32_t> scope;
  std::vector<double> cells;
};

// A factor as it is walked while its first node is eliminated: one stride for each node of the result, 0 where it has no such node.
struct Walk {
  const double* cells;
  size_t row_stride;
  std::vector<size_t> strides;
  bool has_last;
};

class Buckets {
 public:
  Buckets(const ChoiceGraph& graph, const EliminationOrder& order)
      : graph_(graph), order_(order), position_(graph.node_count()), factors_(graph.node_count()) {
    for (uint32_t i = 0; i < order.nodes.size(); ++i) position_[order.nodes[i]] = i;
    for (const ChoiceGraph::Edge& edge : graph.edges) {
      const bool a_first = position_[edge.a] < position_[edge.b];
      const size_t rows = graph.choice_count(edge.a), columns = graph.choice_count(edge.b);
      Factor factor{{a_first ? edge.a : edge.b, a_first ? edge.b : edge.a}, std::vector<double>(rows * columns)};
      if (a_first) std::copy_n(graph.table(edge), rows * columns, factor.cells.data());
      else Transpose(graph.table(edge), rows, columns, factor.cells.data());
      factors_[factor.scope[0]].push_back(std::move(factor));
    }
  }

  void Run() {
    for (uint32_t v : order_.nodes) {
      if (std::vector<uint32_t> scope = ResultScope(v); !scope.empty()) Remove(v, std::move(scope));
    }
  }

  std::vector<uint32_t> Choices() const {
    std::vector<uint32_t> choices(graph_.node_count());
    std::vector<RowSource> sources;
    for (size_t i = order_.nodes.size(); i-- > 0;) {
      const uint32_t v = order_.nodes[i];
      sources.clear();
      for (const Factor& factor : factors_[v]) {
        size_t offset = 0;
        for (size_t d = 1; d < factor.scope.size(); ++d) offset = offset * graph_.choice_count(factor.scope[d]) + choices[factor.scope[d]];
        sources.push_back({factor.cells.data() + offset, factor.cells.size() / graph_.choice_count(v)});
      }
      choices[v] = static_cast<uint32_t>(BestRow(graph_.costs(v), sources));
    }
    return choices;
  }

 private:
  std::vector<uint32_t> ResultScope(uint32_t v) const {
    std::vector<uint32_t> scope;
    for (const Factor& factor : factors_[v]) scope.insert(scope.end(), factor.scope.begin() + 1, factor.scope.end());
    std::sort(scope.begin(), scope.end(), [&](uint32_t a, uint32_t b) { return position_[a] < position_[b]; });
    scope.erase(std::unique(scope.begin(), scope.end()), scope.end());
    return scope;
  }

  std::vector<Walk> Walks(uint32_t v, std::span<const uint32_t> scope) const {
    std::vector<Walk> walks;
    for (const Factor& factor : factors_[v]) {
      Walk walk{factor.cells.data(), factor.cells.size() / graph_.choice_count(v), std::vector<size_t>(scope.size(), 0),
                factor.scope.back() == scope.back()};
      size_t stride = 1;
      for (size_t d = factor.scope.size(); d-- > 1;) {
        const size_t at = static_cast<size_t>(std::find(scope.begin(), scope.end(), factor.scope[d]) - scope.begin());
        walk.strides[at] = stride;
        stride *= graph_.choice_count(factor.scope[d]);
      }
      walks.push_back(std::move(walk));
    }
    return walks;
  }

  // The last node of the result's scope is the fastest dimension of every factor that has it: those are summed by rows, the others
  // give one number a row.
  void Remove(uint32_t v, std::vector<uint32_t> result_scope) {
    Factor result{std::move(result_scope), {}};
    const std::span<const uint32_t> scope = result.scope;
    std::vector<Walk> walks = Walks(v, scope);
    const size_t rows = graph_.choice_count(v), width = graph_.choice_count(scope.back()), outer = scope.size() - 1;
    size_t cells = 1;
    for (uint32_t u : scope) cells *= graph_.choice_count(u);
    result.cells.resize(cells);
    std::vector<double> row_costs(rows);
    std::vector<RowSource> sources;
    std::vector<uint32_t> at(outer, 0);
    for (size_t done = 0; done < cells; done += width) {
      std::copy_n(graph_.costs(v).data(), rows, row_costs.data());
      sources.clear();
      for (const Walk& walk : walks) {
        if (walk.has_last) {
          sources.push_back({walk.cells, walk.row_stride});
        } else {
          for (size_t i = 0; i < rows; ++i) row_costs[i] += walk.cells[i * walk.row_stride];
        }
      }
      MinOverRows(row_costs, sources, width, result.cells.data() + done);
      for (size_t d = outer; d-- > 0;) {
        const bool wraps = ++at[d] == graph_.choice_count(scope[d]);
        const size_t back = wraps ? graph_.choice_count(scope[d]) - 1 : 0;
        for (Walk& walk : walks) walk.cells = wraps ? walk.cells - back * walk.strides[d] : walk.cells + walk.strides[d];
        if (!wraps) break;
        at[d] = 0;
      }
    }
    factors_[scope[0]].push_back(std::move(result));
  }

  const ChoiceGraph& graph_;
  const EliminationOrder& order_;
  std::vector<uint32_t> position_;
  std::vector<std::vector<Factor>> factors_;  // by first node
};

}  // namespace

std::optional<EliminationOrder> PlanElimination(const ChoiceGraph& graph, size_t max_cells) {
  using Entry = std::pair<double, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  Shrinking shrinking(graph);
  std::vector<double> weight(graph.node_count());  // negative: gone
  for (uint32_t v = 0; v < graph.node_count(); ++v) queue.push({weight[v] = shrinking.Weight(v), v});
  EliminationOrder order;
  while (!queue.empty()) {
    const auto [cells, v] = queue.top();
    queue.pop();
    if (cells != weight[v]) continue;
    if (cells > static_cast<double>(max_cells - order.cells)) return std::nullopt;
    order.cells += static_cast<size_t>(cells);
    order.nodes.push_back(v);
    weight[v] = -1;
    shrinking.Remove(v);
    for (uint32_t u : shrinking.neighbours(v)) {
      const double now = shrinking.Weight(u);
      if (now != weight[u]) queue.push({weight[u] = now, u});
    }
  }
  return order;
}

std::vector<uint32_t> Eliminate(const ChoiceGraph& graph, const EliminationOrder& order) {
  Buckets buckets(graph, order);
  buckets.Run();
  std::vector<uint32_t> choices = buckets.Choices();
  if (CostOf(graph, choices) == kForbidden) choices.clear();
  return choices;
}

}  // namespace msrt
