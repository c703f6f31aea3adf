// A node of a graph as an OpView.
#pragma once

#include <vector>

#include "ops/op_def.h"

namespace msrt {

// Types and known constants of a node's inputs and outputs, gathered for an OpView; keeps the arrays the view points to.
class NodeView {
 public:
  NodeView(const Graph& graph, const Node& node);
  const OpView& op() const { return view_; }

 private:
  std::vector<const Type*> inputs_, outputs_;
  std::vector<const ConstTensor*> constants_;
  OpView view_;
};

}  // namespace msrt
