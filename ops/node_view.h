// A node of a graph as an OpView.
#pragma once

#include <vector>

#include "ops/op_def.h"

namespace msrt {

struct GraphFacts;  // ops/propagate.h

// Types and known constants of a node's inputs and outputs, gathered for an OpView; keeps the
// arrays the view points to.
class NodeView {
 public:
  // As the graph declares them.
  NodeView(const Graph& graph, const Node& node);
  // As propagation found them.
  NodeView(const Node& node, const GraphFacts& facts);
  NodeView(const NodeView&) = delete;
  NodeView& operator=(const NodeView&) = delete;
  // Lives as long as this object: do not bind it to a name if the NodeView has none.
  const OpView& op() const { return view_; }

 private:
  template <typename TypeOf, typename ConstantOf>
  void Gather(const Node& node, TypeOf type_of, ConstantOf constant_of);
  static constexpr size_t kInline =
      8;  // validation makes a view for each node of a model; few have more inputs and outputs
  const Type* inline_types_[2 * kInline];
  const ConstTensor* inline_constants_[kInline];
  std::vector<const Type*> more_types_;
  std::vector<const ConstTensor*> more_constants_;
  OpView view_;
};

}  // namespace msrt
