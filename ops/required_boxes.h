// Composes iteration spaces backwards through a graph: from boxes of its outputs to the boxes of
// all values, and the pieces of all nodes, that compute them. Halo exchange, tiles and streaming
// start from this.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/region/resolved_space.h"
#include "ops/node_view.h"
#include "ops/propagate.h"

namespace msrt {

// The resolved spaces of all nodes of a graph. Refers to the graph and the facts.
class GraphSpaces {
 public:
  // A node that cannot be cut, or whose types are not all concrete, has no space.
  static Result<GraphSpaces> Resolve(const Graph& graph, const GraphFacts& facts);

  const Graph& graph() const { return *graph_; }
  const GraphFacts& facts() const { return *facts_; }
  // Null: the node needs the whole of its inputs.
  const ResolvedSpace* of_node(size_t node) const { return spaces_[node].get(); }

 private:
  GraphSpaces(const Graph& graph, const GraphFacts& facts) : graph_(&graph), facts_(&facts) {}
  const Graph* graph_;
  const GraphFacts* facts_;
  std::vector<std::unique_ptr<NodeView>> views_;  // spaces with callbacks refer to them
  std::vector<std::unique_ptr<ResolvedSpace>> spaces_;
};

struct RequiredBoxes {
  // By value, in global coordinates: the hull of the parts that nodes and graph outputs need.
  // nullopt: not needed.
  std::vector<std::optional<Box>> values;
  // By node: the box of its iteration space to compute. Rank 0 for a node without a space; nullopt:
  // the node need not run.
  std::vector<std::optional<Box>> pieces;
};

// `outputs` has a box for each output of the graph; an empty box asks for nothing. Nodes with
// state, communication or calls run whole, whatever is asked for. kInvalidArgument if a box is not
// inside its output.
Result<RequiredBoxes> FindRequiredBoxes(const GraphSpaces& spaces, std::span<const Box> outputs);

}  // namespace msrt
