#include "ops/node_view.h"

namespace msrt {

NodeView::NodeView(const Graph& graph, const Node& node)
    : view_(node.domain, node.op, node.name, &node.attrs, node.def != nullptr ? node.def->attrs : std::span<const AttrDef>(), {}, {}) {
  inputs_.reserve(node.inputs.size());
  constants_.reserve(node.inputs.size());
  outputs_.reserve(node.outputs.size());
  for (ValueId v : node.inputs) {
    inputs_.push_back(v == kNoValue ? nullptr : &graph.value(v).type);
    constants_.push_back(v == kNoValue ? nullptr : graph.value(v).constant.get());
  }
  for (ValueId v : node.outputs) outputs_.push_back(v == kNoValue ? nullptr : &graph.value(v).type);
  view_ = OpView(node.domain, node.op, node.name, &node.attrs, node.def != nullptr ? node.def->attrs : std::span<const AttrDef>(), inputs_,
                 outputs_, constants_);
}

}  // namespace msrt
