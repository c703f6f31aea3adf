#include "ops/node_view.h"

namespace msrt {

NodeView::NodeView(const Graph& graph, const Node& node)
    : view_(node.domain, node.op, node.name, &node.attrs, node.def != nullptr ? node.def->attrs : std::span<const AttrDef>(), {}, {}) {
  const size_t inputs = node.inputs.size(), outputs = node.outputs.size();
  const Type** types = inline_types_;
  const ConstTensor** constants = inline_constants_;
  if (inputs > kInline || outputs > kInline) {
    more_types_.resize(inputs + outputs);
    more_constants_.resize(inputs);
    types = more_types_.data();
    constants = more_constants_.data();
  }
  for (size_t i = 0; i < inputs; ++i) {
    const ValueId v = node.inputs[i];
    types[i] = v == kNoValue ? nullptr : &graph.value(v).type;
    constants[i] = v == kNoValue ? nullptr : graph.value(v).constant.get();
  }
  for (size_t i = 0; i < outputs; ++i) types[inputs + i] = node.outputs[i] == kNoValue ? nullptr : &graph.value(node.outputs[i]).type;
  view_ = OpView(node.domain, node.op, node.name, &node.attrs, node.def != nullptr ? node.def->attrs : std::span<const AttrDef>(),
                 {types, inputs}, {types + inputs, outputs}, {constants, inputs});
}

}  // namespace msrt
