#include "core/solve/tighten.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace msrt {
namespace {

// Each round revisits the neighbours of nodes that lost a choice; later rounds find less and less.
constexpr int kDeadEndRounds = 4;
// After the costs of a separable edge moved to its nodes, only this relative rounding remains.
constexpr double kRounding = 1e-14;

class Tightener {
 public:
  Tightener(ChoiceGraph* graph, SolveCounts* counts)
      : graph_(*graph),
        counts_(counts),
        incidence_(*graph),
        edge_waits_(graph->edges.size(), 0),
        edge_dropped_(graph->edges.size(), 0),
        node_waits_(graph->node_count(), 1) {
    for (uint32_t e = 0; e < graph_.edges.size(); ++e) Await(e);
    changed_ = std::find(graph_.node_costs.begin(), graph_.node_costs.end(), kForbidden) !=
               graph_.node_costs.end();
  }

  bool Run(bool dead_ends) {
    NormaliseWaiting();
    for (int round = 0; dead_ends && round < kDeadEndRounds; ++round) {
      const bool changed_before = std::exchange(changed_, false);
      for (uint32_t v = 0; v < graph_.node_count(); ++v) {
        if (std::exchange(node_waits_[v], 0)) RemoveDeadEnds(v);
      }
      NormaliseWaiting();
      const bool found = changed_;
      changed_ = changed_ || changed_before;
      if (!found) break;
    }
    const bool dropped = DropEdges();
    return changed_ || dropped;
  }

 private:
  void Await(uint32_t edge) {
    if (edge_dropped_[edge] || std::exchange(edge_waits_[edge], 1)) return;
    waiting_.push_back(edge);
  }
  void NormaliseWaiting() {
    while (!waiting_.empty()) {
      const uint32_t edge = waiting_.back();
      waiting_.pop_back();
      edge_waits_[edge] = 0;
      if (!edge_dropped_[edge]) Normalise(edge);
    }
  }
  void Forbid(uint32_t v, size_t choice) {
    graph_.costs(v)[choice] = kForbidden;
    changed_ = true;
    for (uint32_t e : incidence_.edges(v)) {
      Await(e);
      const ChoiceGraph::Edge& edge = graph_.edges[e];
      node_waits_[edge.a == v ? edge.b : edge.a] = 1;
    }
  }

  // Moves the least cost of each row, then of each column, to the nodes.
  void Normalise(uint32_t e) {
    const ChoiceGraph::Edge& edge = graph_.edges[e];
    const std::span<double> a = graph_.costs(edge.a), b = graph_.costs(edge.b);
    double* table = graph_.table(edge);
    counts_->cells += 2 * static_cast<int64_t>(a.size() * b.size());
    row_least_.assign(a.size(), 0);
    column_least_.assign(b.size(), kForbidden);
    for (size_t x = 0; x < a.size(); ++x) {
      double* row = table + x * b.size();
      if (a[x] == kForbidden) continue;
      double least = kForbidden;
      for (size_t y = 0; y < b.size(); ++y)
        least = std::min(least, b[y] == kForbidden ? kForbidden : row[y]);
      if (least == kForbidden) {
        ++counts_->impossible_choices;
        Forbid(edge.a, x);
        continue;
      }
      row_least_[x] = std::abs(least);
      a[x] += least;
      for (size_t y = 0; y < b.size(); ++y) {
        row[y] -= least;
        column_least_[y] = std::min(column_least_[y], row[y]);
      }
    }
    double left = 0;  // beyond each cell's own rounding, so that no row hides the others
    for (size_t y = 0; y < b.size(); ++y) {
      if (b[y] == kForbidden) continue;
      if (column_least_[y] == kForbidden) {
        ++counts_->impossible_choices;
        Forbid(edge.b, y);
        continue;
      }
      b[y] += column_least_[y];
      for (size_t x = 0; x < a.size(); ++x) {
        double& cell = table[x * b.size() + y];
        cell -= column_least_[y];
        if (a[x] != kForbidden)
          left = std::max(left, cell - kRounding * (row_least_[x] + column_least_[y]));
      }
    }
    if (left == 0) {
      ++counts_->separable_edges;
      edge_dropped_[e] = 1;
    }
  }

  // Whether `better` never costs more than `worse`, whatever the neighbours choose. With normalised
  // tables no edge can make up for a higher node cost, which is why the caller only asks for the
  // cheaper ones, and the sum can stop early.
  bool Dominates(uint32_t v, size_t better, size_t worse) const {
    double excess = graph_.costs(v)[better] - graph_.costs(v)[worse];
    for (uint32_t e : incidence_.edges(v)) {
      if (excess > 0) return false;
      if (edge_dropped_[e]) continue;
      const ChoiceGraph::Edge& edge = graph_.edges[e];
      const bool rows = edge.a == v;
      const std::span<const double> other = graph_.costs(rows ? edge.b : edge.a);
      const size_t own_step = rows ? other.size() : 1,
                   other_step = rows ? 1 : graph_.choice_count(v);
      const double *b = graph_.table(edge) + better * own_step,
                   *w = graph_.table(edge) + worse * own_step;
      counts_->cells += static_cast<int64_t>(other.size());
      double max_difference = -kForbidden;
      for (size_t y = 0; y < other.size(); ++y) {
        if (other[y] == kForbidden || w[y * other_step] == kForbidden) continue;
        max_difference = std::max(max_difference, b[y * other_step] - w[y * other_step]);
      }
      excess += max_difference;
    }
    return excess <= 0;
  }

  void RemoveDeadEnds(uint32_t v) {
    const std::span<const double> costs = graph_.costs(v);
    order_.clear();
    for (uint32_t x = 0; x < costs.size(); ++x) {
      if (costs[x] != kForbidden) order_.push_back(x);
    }
    std::stable_sort(order_.begin(), order_.end(),
                     [&](uint32_t x, uint32_t y) { return costs[x] < costs[y]; });
    for (size_t worse = order_.size(); worse-- > 1;) {
      for (size_t better = 0; better < worse; ++better) {
        if (!Dominates(v, order_[better], order_[worse])) continue;
        ++counts_->dead_end_choices;
        Forbid(v, order_[worse]);
        break;
      }
    }
  }

  bool DropEdges() {
    size_t kept = 0;
    for (size_t e = 0; e < graph_.edges.size(); ++e) {
      if (!edge_dropped_[e]) graph_.edges[kept++] = graph_.edges[e];
    }
    const bool dropped = kept != graph_.edges.size();
    graph_.edges.resize(kept);
    return dropped;
  }

  ChoiceGraph& graph_;
  SolveCounts* counts_;
  Incidence incidence_;
  std::vector<uint8_t> edge_waits_, edge_dropped_, node_waits_;
  std::vector<uint32_t> waiting_, order_;
  std::vector<double> row_least_, column_least_;
  bool changed_ = false;
};

}  // namespace

bool Tighten(ChoiceGraph* graph, bool dead_ends, SolveCounts* counts) {
  return Tightener(graph, counts).Run(dead_ends);
}

}  // namespace msrt
