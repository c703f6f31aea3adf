#include "core/solve/reduction.h"

#include <algorithm>

#include "core/solve/min_plus.h"

namespace msrt {
namespace {

uint64_t PairKey(uint32_t a, uint32_t b) {
  return (uint64_t{std::min(a, b)} << 32) | std::max(a, b);
}

}  // namespace

Reduction::Reduction(const ChoiceGraph& graph, std::span<const double> node_costs,
                     SolveCounts* counts)
    : counts_(counts) {
  KeepAllowedChoices(graph, node_costs);
  if (!feasible_) return;
  TakeEdges(graph);
  Run();
}

void Reduction::KeepAllowedChoices(const ChoiceGraph& graph, std::span<const double> node_costs) {
  nodes_.resize(graph.node_count());
  kept_.reserve(node_costs.size());
  double* costs = arena_.Allocate(node_costs.size());
  for (uint32_t v = 0; v < graph.node_count(); ++v) {
    Node& node = nodes_[v];
    node.costs = costs;
    node.first_kept = kept_.size();
    for (size_t x = graph.first_choice[v]; x < graph.first_choice[v + 1]; ++x) {
      if (node_costs[x] == kForbidden) continue;
      *costs++ = node_costs[x];
      kept_.push_back(static_cast<uint32_t>(x - graph.first_choice[v]));
    }
    node.choice_count = static_cast<uint32_t>(kept_.size() - node.first_kept);
    if (node.choice_count == 0) feasible_ = false;
  }
}

void Reduction::TakeEdges(const ChoiceGraph& graph) {
  for (const ChoiceGraph::Edge& edge : graph.edges)
    ++nodes_[edge.a].degree, ++nodes_[edge.b].degree;
  size_t slots = 0;
  for (Node& node : nodes_) {
    node.first_edge = slots;
    slots += node.degree;
    node.degree = 0;
  }
  edge_slots_.resize(slots);
  edges_.reserve(graph.edges.size() + graph.node_count());
  edge_of_pair_.reserve(graph.edges.size() + graph.node_count());
  for (const ChoiceGraph::Edge& from : graph.edges) {
    bool added;
    const uint32_t edge = FindOrAddEdge(from.a, from.b, &added);
    const bool whole = nodes_[from.a].choice_count == graph.choice_count(from.a) &&
                       nodes_[from.b].choice_count == graph.choice_count(from.b);
    if (added && whole) edges_[edge].table = graph.table(from);
    else AddTable(graph, from, edge);
  }
}

// Makes the edge own its table, zeros if it had none, and returns it.
double* Reduction::OwnTable(Edge* edge) {
  if (edge->own != nullptr) return edge->own;
  const size_t cells = CellCount(*edge);
  edge->own = arena_.Allocate(cells);
  if (edge->table != nullptr) std::copy_n(edge->table, cells, edge->own);
  else std::fill_n(edge->own, cells, 0.0);
  edge->table = edge->own;
  return edge->own;
}

void Reduction::AddTable(const ChoiceGraph& graph, const ChoiceGraph::Edge& from, uint32_t edge) {
  const Node &a = nodes_[from.a], &b = nodes_[from.b];
  const size_t columns = graph.choice_count(from.b);
  const bool same_way = edges_[edge].ends[0] == from.a;
  const size_t a_step = same_way ? b.choice_count : 1, b_step = same_way ? 1 : a.choice_count;
  double* table = OwnTable(&edges_[edge]);
  counts_->cells += static_cast<int64_t>(CellCount(edges_[edge]));
  for (uint32_t x = 0; x < a.choice_count; ++x) {
    const double* row = graph.table(from) + kept_[a.first_kept + x] * columns;
    for (uint32_t y = 0; y < b.choice_count; ++y)
      table[x * a_step + y * b_step] += row[kept_[b.first_kept + y]];
  }
}

uint32_t Reduction::FindOrAddEdge(uint32_t a, uint32_t b, bool* added) {
  const uint32_t next = static_cast<uint32_t>(edges_.size());
  const auto [place, is_new] = edge_of_pair_.try_emplace(PairKey(a, b), next);
  *added = is_new;
  if (!is_new) return place->second;
  edges_.push_back({{a, b}, {nodes_[a].degree, nodes_[b].degree}, nullptr, nullptr});
  edge_slots_[nodes_[a].first_edge + nodes_[a].degree++] = next;
  edge_slots_[nodes_[b].first_edge + nodes_[b].degree++] = next;
  return next;
}

void Reduction::Detach(uint32_t edge, uint32_t node) {
  Node& n = nodes_[node];
  const uint32_t slot = edges_[edge].slots[EndOf(edge, node)];
  const uint32_t last = edge_slots_[n.first_edge + --n.degree];
  edge_slots_[n.first_edge + slot] = last;
  edges_[last].slots[EndOf(last, node)] = slot;
}

void Reduction::Enqueue(uint32_t node) {
  const Node& n = nodes_[node];
  if (n.removed) return;
  if (n.degree <= 1 || n.choice_count == 1) cheap_.push_back(node);
  else if (n.degree == 2) degree_two_.push_back(node);
}

void Reduction::Run() {
  for (uint32_t v = static_cast<uint32_t>(nodes_.size()); v-- > 0;) Enqueue(v);
  while (feasible_ && !(cheap_.empty() && degree_two_.empty())) {
    std::vector<uint32_t>& from = cheap_.empty() ? degree_two_ : cheap_;
    const uint32_t node = from.back();
    from.pop_back();
    if (!nodes_[node].removed) Remove(node);
  }
}

void Reduction::Remove(uint32_t v) {
  Node& node = nodes_[v];
  const uint32_t degree = node.degree;
  const uint32_t* slots = edge_slots_.data() + node.first_edge;
  RemovedNode record{v, {degree > 0 ? slots[0] : kNone, degree > 1 ? slots[1] : kNone}};
  node.removed = true;
  if (node.choice_count == 1) {
    FoldSingle(v);
    record.edges = {kNone, kNone};
  } else if (degree == 0) {
    ++counts_->degree_zero;
    base_ += *std::min_element(node.costs, node.costs + node.choice_count);
  } else {
    for (uint32_t edge : std::span(record.edges).first(degree)) Detach(edge, Other(edge, v));
    if (degree == 1) FoldIntoNode(v, record.edges[0]);
    else FoldIntoEdge(v, record.edges[0], record.edges[1]);
    for (uint32_t edge : std::span(record.edges).first(degree)) Enqueue(Other(edge, v));
  }
  removed_.push_back(record);
  feasible_ = base_ != kForbidden;
}

void Reduction::FoldSingle(uint32_t v) {
  ++counts_->single_choice;
  const Node& node = nodes_[v];
  base_ += node.costs[0];
  for (uint32_t i = 0; i < node.degree; ++i) {
    const uint32_t edge = edge_slots_[node.first_edge + i], u = Other(edge, v);
    Detach(edge, u);
    // With one choice the table is a row or a column with a cell for each choice of the other end.
    for (uint32_t x = 0; x < nodes_[u].choice_count; ++x)
      nodes_[u].costs[x] += edges_[edge].table[x];
    Enqueue(u);
  }
}

const double* Reduction::RowsOf(uint32_t edge, uint32_t v, std::vector<double>* scratch) const {
  if (EndOf(edge, v) == 0) return edges_[edge].table;
  const size_t rows = nodes_[Other(edge, v)].choice_count, columns = nodes_[v].choice_count;
  scratch->resize(rows * columns);
  Transpose(edges_[edge].table, rows, columns, scratch->data());
  return scratch->data();
}

void Reduction::FoldIntoNode(uint32_t v, uint32_t edge) {
  ++counts_->degree_one;
  const Node &node = nodes_[v], &other = nodes_[Other(edge, v)];
  const RowSource source{RowsOf(edge, v, &scratch0_), other.choice_count};
  counts_->cells += static_cast<int64_t>(CellCount(edges_[edge]));
  product_.resize(other.choice_count);
  MinOverRows({node.costs, node.choice_count}, {&source, 1}, other.choice_count, product_.data());
  for (uint32_t x = 0; x < other.choice_count; ++x) other.costs[x] += product_[x];
}

void Reduction::FoldIntoEdge(uint32_t v, uint32_t edge0, uint32_t edge1) {
  ++counts_->degree_two;
  const uint32_t u = Other(edge0, v), w = Other(edge1, v);
  bool added;
  const uint32_t target = FindOrAddEdge(u, w, &added);
  // Rows of the product are those of the edge that it goes to, so that adding it is a plain loop.
  const bool swap = edges_[target].ends[0] != u;
  const uint32_t to_rows = swap ? edge1 : edge0, to_columns = swap ? edge0 : edge1;
  const Node &node = nodes_[v], &rows = nodes_[swap ? w : u], &columns = nodes_[swap ? u : w];
  const RowSource source{RowsOf(to_columns, v, &scratch0_), columns.choice_count};
  const uint32_t rows_end = edges_[target].ends[0];
  const double* row_table = RowsOf(to_rows, rows_end, &scratch1_);
  counts_->cells += static_cast<int64_t>(CellCount(edges_[target]) * node.choice_count);
  row_costs_.resize(node.choice_count);
  product_.resize(columns.choice_count);
  // The old table is added while writing, so that a table of the graph needs no copy first.
  const double* before = edges_[target].table;
  if (edges_[target].own == nullptr)
    edges_[target].table = edges_[target].own = arena_.Allocate(CellCount(edges_[target]));
  double* out = edges_[target].own;
  for (uint32_t x = 0; x < rows.choice_count; ++x, out += columns.choice_count) {
    for (uint32_t i = 0; i < node.choice_count; ++i)
      row_costs_[i] = node.costs[i] + row_table[x * node.choice_count + i];
    if (added) {
      MinOverRows(row_costs_, {&source, 1}, columns.choice_count, out);
    } else {
      MinOverRows(row_costs_, {&source, 1}, columns.choice_count, product_.data());
      for (uint32_t y = 0; y < columns.choice_count; ++y) out[y] = before[y] + product_[y];
      before += columns.choice_count;
    }
  }
}

ChoiceGraph Reduction::Core() const {
  ChoiceGraph core;
  size_t cells = 0;
  for (const Edge& edge : edges_) {
    if (!nodes_[edge.ends[0]].removed && !nodes_[edge.ends[1]].removed) cells += CellCount(edge);
  }
  core.cells.reserve(cells);
  counts_->cells += static_cast<int64_t>(cells);
  std::vector<uint32_t> core_node(nodes_.size(), kNone);
  for (uint32_t v = 0; v < nodes_.size(); ++v) {
    if (nodes_[v].removed) continue;
    core_node[v] = core.node_count();
    core.node_costs.insert(core.node_costs.end(), nodes_[v].costs,
                           nodes_[v].costs + nodes_[v].choice_count);
    core.first_choice.push_back(core.node_costs.size());
  }
  for (const Edge& edge : edges_) {
    const uint32_t a = core_node[edge.ends[0]], b = core_node[edge.ends[1]];
    if (a == kNone || b == kNone) continue;
    core.edges.push_back({a, b, core.cells.size()});
    core.cells.insert(core.cells.end(), edge.table,
                      edge.table + core.choice_count(a) * core.choice_count(b));
  }
  return core;
}

std::vector<uint32_t> Reduction::Lift(std::span<const uint32_t> core_choices) const {
  std::vector<uint32_t> choices(nodes_.size());
  size_t next_core = 0;
  for (uint32_t v = 0; v < nodes_.size(); ++v) {
    if (!nodes_[v].removed) choices[v] = core_choices[next_core++];
  }
  for (size_t r = removed_.size(); r-- > 0;) {
    const uint32_t v = removed_[r].node;
    std::array<RowSource, 2> sources;
    size_t count = 0;
    for (uint32_t edge : removed_[r].edges) {
      if (edge == kNone) continue;
      const uint32_t other = Other(edge, v);
      if (EndOf(edge, v) == 0)
        sources[count++] = {edges_[edge].table + choices[other], nodes_[other].choice_count};
      else
        sources[count++] = {edges_[edge].table + choices[other] * size_t{nodes_[v].choice_count},
                            1};
    }
    choices[v] = static_cast<uint32_t>(
        BestRow({nodes_[v].costs, nodes_[v].choice_count}, std::span(sources).first(count)));
  }
  for (uint32_t v = 0; v < nodes_.size(); ++v)
    choices[v] = kept_[nodes_[v].first_kept + choices[v]];
  return choices;
}

}  // namespace msrt
