// A node of a graph as an OpView.
#pragma once

#include <vector>

#include "ops/op_def.h"

namespace msrt {

struct GraphFacts;  // ops/propagate.h

// Collects the types and known constants of a node's inputs and outputs for an OpView, and owns the
// arrays that the view points to.
class NodeView {
 public:
  // Types as the graph declares them.
  NodeView(const Graph& graph, const Node& node);
  // Types as propagation inferred them.
  NodeView(const Node& node, const GraphFacts& facts);
  NodeView(const NodeView&) = delete;
  NodeView& operator=(const NodeView&) = delete;
  // Lives as long as this object: do not keep a reference to the view of a temporary NodeView.
  const OpView& op() const { return view_; }

 private:
  template <typename TypeOf, typename ConstantOf>
  void Gather(const Node& node, TypeOf type_of, ConstantOf constant_of);
  // Validation makes a view for each node of a model; few have more inputs and outputs than this.
  static constexpr size_t kInline = 8;
  const Type* inline_types_[2 * kInline];
  const ConstTensor* inline_constants_[kInline];
  std::vector<const Type*> more_types_;
  std::vector<const ConstTensor*> more_constants_;
  OpView view_;
};

// Whether the node is a piece of a larger one: it has local attributes. Passes that match patterns
// skip pieces: those attributes change what a node computes.
bool IsPiece(const Node& node);

}  // namespace msrt
