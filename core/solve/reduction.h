// One sweep of exact reductions: nodes with a single choice and nodes of degree 0, 1 and 2 are
// folded into the rest, until every remaining node (the core) has at least three neighbours and two
// choices. Chains, trees and series-parallel graphs leave an empty core.
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
  // Runs all reductions. `node_costs` replaces graph.node_costs, so that fixed and priced variants
  // share the tables. The graph's tables must outlive the object.
  Reduction(const ChoiceGraph& graph, std::span<const double> node_costs, SolveCounts* counts);

  // False if some node has no allowed choice left. The other functions must not be called then.
  bool feasible() const { return feasible_; }
  // The least cost of the removed nodes, which is exact for the choices that Lift returns.
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
    size_t first_edge;  // in edge_slots_; degrees never exceed their initial value
    uint32_t degree = 0;
    bool removed = false;
  };
  struct Edge {
    std::array<uint32_t, 2> ends;   // rows are choices of ends[0]
    std::array<uint32_t, 2> slots;  // where the two ends list this edge
    const double* table;
    double* own;  // the same if it is in the arena; null for the graph's, which must not change
  };
  // A removed node and the edges that determine its choice from those of its neighbours.
  struct RemovedNode {
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
  std::vector<uint32_t> kept_;  // maps our choices to the graph's
  std::vector<uint32_t> edge_slots_;
  std::unordered_map<uint64_t, uint32_t> edge_of_pair_;
  std::vector<RemovedNode> removed_;
  // Queues of nodes to remove: cheap ones first, because they make the others smaller.
  std::vector<uint32_t> cheap_, degree_two_;
  std::vector<double> scratch0_, scratch1_, row_costs_, product_;
  CellArena arena_;
};

}  // namespace msrt
