// Composes iteration spaces backwards through a graph: from boxes of its outputs to the boxes of
// all values, and the pieces of all nodes, that compute them. Halo exchange, tiles and streaming
// start from this.
#pragma once

#include <functional>
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

// A box of a value, in global coordinates.
struct ValueBox {
  ValueId value;
  Box box;
};

struct BoxRequest {
  std::span<const ValueBox> targets;  // wanted; an empty box asks for nothing
  // They exist. If a value is required in more than its source, only the rest is computed, provided
  // that the rest is a box. One for each value at most.
  std::span<const ValueBox> sources = {};
  // The nodes in an order in which they can run; those of one group run together, and whole if they
  // are several. Empty: each node by itself.
  std::span<const std::vector<uint32_t>> groups = {};
  // Whether pieces of a node may read a part of a dim of an input. Null: always.
  std::function<bool(size_t node, size_t input, int dim)> may_cut = {};
  // By node: the granule of its candidate, by dim of output 0 (msrt_candidate). The pieces of such
  // a node are extended to multiples of it. Null, or an empty span: none.
  std::function<std::span<const int64_t>(size_t node)> granule = {};
};

struct RequiredBoxes {
  // By value, in global coordinates: the hull of the parts that nodes and targets need. nullopt:
  // not needed.
  std::vector<std::optional<Box>> values;
  // By node: the box of its iteration space to compute. Rank 0 for a node without a space; nullopt:
  // the node need not run.
  std::vector<std::optional<Box>> pieces;
};

// Nodes with state, communication or calls run whole, whatever is asked for; nodes whose outputs
// are known do not run. kInvalidArgument if a box is not inside its value.
Result<RequiredBoxes> FindRequiredBoxes(const GraphSpaces& spaces, const BoxRequest& request);
// `outputs` has a box for each output of the graph.
Result<RequiredBoxes> FindRequiredBoxes(const GraphSpaces& spaces, std::span<const Box> outputs);

}  // namespace msrt
