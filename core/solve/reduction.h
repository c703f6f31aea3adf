// One sweep of exact reductions: nodes with a single choice and nodes of degree 0, 1 and 2 are
// folded into what remains, until every node left (the core) has three neighbours and two choices.
// Chains, trees and series-parallel graphs leave nothing.
#pragma once

#include <array>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/solve/cell_arena.h"
#include "core/solve/choice.h"

namespace msrt {

class Reduction {
 public:
  // `node_costs` stands in for graph.node_costs, so that fixed and priced variants share the
  // tables. Runs to the end. Reads the graph's tables for as long as it lives.
  Reduction(const ChoiceGraph& graph, std::span<const double> node_costs, SolveCounts* counts);

  // False: some node has no allowed choice left. Nothing else may then be asked.
  bool feasible() const { return feasible_; }
  // What the removed nodes cost at least, and exactly in the choices that Lift gives.
  double base() const { return base_; }
  ChoiceGraph Core() const;
  // The choices of all nodes from those of the core.
  std::vector<uint32_t> Lift(std::span<const uint32_t> core_choices) const;

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct Node {
    double* costs;
    uint32_t choice_count;
    size_t first_kept;  // in kept_
    size_t first_edge;  // in edge_slots_; degrees never grow beyond what they begin with
    uint32_t degree = 0;
    bool removed = false;
  };
  struct Edge {
    std::array<uint32_t, 2> ends;   // rows are choices of ends[0]
    std::array<uint32_t, 2> slots;  // where the two ends list this edge
    const double* table;
    double* own;  // the same, if we made it; null for the graph's own table, which must not change
  };
  // A removed node and the edges by which its choice follows from its neighbours'.
  struct Removed {
    uint32_t node;
    std::array<uint32_t, 2> edges;
  };

  void KeepAllowedChoices(const ChoiceGraph& graph, std::span<const double> node_costs);
  void TakeEdges(const ChoiceGraph& graph);
  void AddTable(const ChoiceGraph& graph, const ChoiceGraph::Edge& from, uint32_t edge);
  // A new edge has no table yet.
  uint32_t FindOrAddEdge(uint32_t a, uint32_t b, bool* added);
  size_t CellCount(const Edge& edge) const {
    return size_t{nodes_[edge.ends[0]].choice_count} * nodes_[edge.ends[1]].choice_count;
  }
  double* OwnTable(Edge* edge);
  void Detach(uint32_t edge, uint32_t node);
  void Enqueue(uint32_t node);
  void Run();
  void Remove(uint32_t node);
  void FoldSingle(uint32_t node);
  void FoldIntoNode(uint32_t node, uint32_t edge);
  void FoldIntoEdge(uint32_t node, uint32_t edge0, uint32_t edge1);
  int EndOf(uint32_t edge, uint32_t node) const { return edges_[edge].ends[0] == node ? 0 : 1; }
  uint32_t Other(uint32_t edge, uint32_t node) const {
    return edges_[edge].ends[1 - EndOf(edge, node)];
  }
  // The edge's table with the node's choices as rows, transposed into `scratch` where it is stored
  // the other way.
  const double* RowsOf(uint32_t edge, uint32_t node, std::vector<double>* scratch) const;

  SolveCounts* counts_;
  bool feasible_ = true;
  double base_ = 0;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::vector<uint32_t> kept_;  // our choices -> the graph's
  std::vector<uint32_t> edge_slots_;
  std::unordered_map<uint64_t, uint32_t> edge_of_pair_;
  std::vector<Removed> removed_;
  std::vector<uint32_t> cheap_,
      degree_two_;  // to be looked at: cheap ones first, they make the others smaller
  std::vector<double> scratch0_, scratch1_, row_costs_, product_;
  CellArena arena_;
};

}  // namespace msrt
