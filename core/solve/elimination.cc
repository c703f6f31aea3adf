#include "core/solve/elimination.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "core/solve/cell_arena.h"
#include "core/solve/min_plus.h"

namespace msrt {
namespace {

// The structure of the graph while nodes are removed.
class ShrinkingGraph {
 public:
  explicit ShrinkingGraph(const ChoiceGraph& graph)
      : graph_(graph), neighbours_(graph.node_count()), seen_(graph.node_count(), 0) {
    for (const ChoiceGraph::Edge& edge : graph.edges) {
      neighbours_[edge.a].push_back(edge.b);
      neighbours_[edge.b].push_back(edge.a);
    }
  }
  const std::vector<uint32_t>& neighbours(uint32_t v) const { return neighbours_[v]; }

  // The cells that removing the node now would compute. A product too large for a double is
  // infinite, which still sorts correctly.
  double Weight(uint32_t v) const {
    double weight = static_cast<double>(graph_.choice_count(v));
    for (uint32_t u : neighbours_[v]) weight *= static_cast<double>(graph_.choice_count(u));
    return weight;
  }

  // Removes a node: its neighbours become neighbours of each other.
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

// A table over nodes in the order of their elimination. It is in the bucket of the first, which is
// its slowest dimension.
struct Factor {
  std::vector<uint32_t> scope;
  const double* cells;
  size_t row_stride;  // cells for one choice of the first node
};

// The position in a factor while its first node is eliminated.
struct Walk {
  const double* cells;
  size_t row_stride;
  bool has_last;  // true if the factor contains the last node of the result
};

class Buckets {
 public:
  Buckets(const ChoiceGraph& graph, const EliminationOrder& order)
      : graph_(graph), order_(order), position_(graph.node_count()), factors_(graph.node_count()) {
    for (uint32_t i = 0; i < order.nodes.size(); ++i) position_[order.nodes[i]] = i;
    for (const ChoiceGraph::Edge& edge : graph.edges) {
      const size_t rows = graph.choice_count(edge.a), columns = graph.choice_count(edge.b);
      if (position_[edge.a] < position_[edge.b]) {
        factors_[edge.a].push_back({{edge.a, edge.b}, graph.table(edge), columns});
      } else {
        double* turned = arena_.Allocate(rows * columns);
        Transpose(graph.table(edge), rows, columns, turned);
        factors_[edge.b].push_back({{edge.b, edge.a}, turned, rows});
      }
    }
  }

  void Run() {
    for (uint32_t v : order_.nodes) {
      std::vector<uint32_t> scope = ResultScope(v);
      if (scope.empty()) continue;
      const double* cells = Remove(v, scope);
      const uint32_t first = scope[0];
      size_t row_stride = 1;
      for (size_t d = 1; d < scope.size(); ++d) row_stride *= graph_.choice_count(scope[d]);
      factors_[first].push_back({std::move(scope), cells, row_stride});
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
        for (size_t d = 1; d < factor.scope.size(); ++d)
          offset = offset * graph_.choice_count(factor.scope[d]) + choices[factor.scope[d]];
        sources.push_back({factor.cells + offset, factor.row_stride});
      }
      choices[v] = static_cast<uint32_t>(BestRow(graph_.costs(v), sources));
    }
    return choices;
  }

 private:
  std::vector<uint32_t> ResultScope(uint32_t v) const {
    std::vector<uint32_t> scope;
    for (const Factor& factor : factors_[v])
      scope.insert(scope.end(), factor.scope.begin() + 1, factor.scope.end());
    std::sort(scope.begin(), scope.end(),
              [&](uint32_t a, uint32_t b) { return position_[a] < position_[b]; });
    scope.erase(std::unique(scope.begin(), scope.end()), scope.end());
    return scope;
  }

  // strides_[d * factors + f] is the distance in factor f of one step of the result's node d: 0 if
  // the factor does not contain that node.
  void PrepareWalks(uint32_t v, std::span<const uint32_t> scope) {
    const std::vector<Factor>& factors = factors_[v];
    walks_.clear();
    strides_.assign(scope.size() * factors.size(), 0);
    for (size_t f = 0; f < factors.size(); ++f) {
      walks_.push_back(
          {factors[f].cells, factors[f].row_stride, factors[f].scope.back() == scope.back()});
      size_t stride = 1, at = scope.size();
      for (size_t d = factors[f].scope.size(); d-- > 1;) {
        while (scope[--at] != factors[f].scope[d]) {
        }
        strides_[at * factors.size() + f] = stride;
        stride *= graph_.choice_count(factors[f].scope[d]);
      }
    }
  }

  // Moves to the next row of the result: all choices but that of its last node.
  void Step(std::span<const uint32_t> scope) {
    for (size_t d = scope.size() - 1; d-- > 0;) {
      const size_t* strides = &strides_[d * walks_.size()];
      if (++at_[d] < graph_.choice_count(scope[d])) {
        for (size_t f = 0; f < walks_.size(); ++f) walks_[f].cells += strides[f];
        return;
      }
      for (size_t f = 0; f < walks_.size(); ++f) walks_[f].cells -= (at_[d] - 1) * strides[f];
      at_[d] = 0;
    }
  }

  // Eliminates the node and returns the table over `scope` that replaces it. The last node of the
  // scope is the fastest dimension of every factor that contains it: those are summed by rows, the
  // others add one number per row.
  const double* Remove(uint32_t v, std::span<const uint32_t> scope) {
    PrepareWalks(v, scope);
    const size_t rows = graph_.choice_count(v), width = graph_.choice_count(scope.back());
    size_t cells = 1;
    for (uint32_t u : scope) cells *= graph_.choice_count(u);
    double* result = arena_.Allocate(cells);
    row_costs_.resize(rows);
    at_.assign(scope.size() - 1, 0);
    for (size_t done = 0; done < cells; done += width) {
      std::copy_n(graph_.costs(v).data(), rows, row_costs_.data());
      sources_.clear();
      for (const Walk& walk : walks_) {
        if (walk.has_last) {
          sources_.push_back({walk.cells, walk.row_stride});
        } else {
          for (size_t i = 0; i < rows; ++i) row_costs_[i] += walk.cells[i * walk.row_stride];
        }
      }
      MinOverRows(row_costs_, sources_, width, result + done);
      Step(scope);
    }
    return result;
  }

  const ChoiceGraph& graph_;
  const EliminationOrder& order_;
  std::vector<uint32_t> position_;
  std::vector<std::vector<Factor>> factors_;  // by first node
  CellArena arena_;
  std::vector<Walk> walks_;
  std::vector<size_t> strides_, at_;
  std::vector<double> row_costs_;
  std::vector<RowSource> sources_;
};

}  // namespace

std::optional<EliminationOrder> PlanElimination(const ChoiceGraph& graph, size_t max_cells) {
  using Entry = std::pair<double, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  ShrinkingGraph shrinking(graph);
  std::vector<double> weight(graph.node_count());  // negative: removed
  for (uint32_t v = 0; v < graph.node_count(); ++v)
    queue.push({weight[v] = shrinking.Weight(v), v});
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
