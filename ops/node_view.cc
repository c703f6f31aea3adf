#include "ops/node_view.h"

#include <algorithm>

#include "ops/propagate.h"

namespace msrt {
namespace {

OpView Bare(const Node& node) {
  const OpView view(node.domain, node.op, node.name, &node.attrs,
                    node.def != nullptr ? node.def->attrs : std::span<const AttrDef>(), {}, {});
  return node.def == nullptr ? view : view.WithCustom(node.def->custom);
}

}  // namespace

template <typename TypeOf, typename ConstantOf>
void NodeView::Gather(const Node& node, TypeOf type_of, ConstantOf constant_of) {
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
    types[i] = v == kNoValue ? nullptr : type_of(v);
    constants[i] = v == kNoValue ? nullptr : constant_of(v);
  }
  for (size_t i = 0; i < outputs; ++i)
    types[inputs + i] = node.outputs[i] == kNoValue ? nullptr : type_of(node.outputs[i]);
  view_ = view_.WithTypes({types, inputs}, {types + inputs, outputs}, {constants, inputs});
}

NodeView::NodeView(const Graph& graph, const Node& node) : view_(Bare(node)) {
  Gather(
      node, [&](ValueId v) { return &graph.value(v).type; },
      [&](ValueId v) { return graph.value(v).constant.get(); });
}

NodeView::NodeView(const Node& node, const GraphFacts& facts) : view_(Bare(node)) {
  Gather(
      node, [&](ValueId v) { return &facts.types[IndexOf(v)]; },
      [&](ValueId v) { return facts.known[IndexOf(v)]; });
}

bool IsPiece(const Node& node) {
  return node.def != nullptr &&
         std::any_of(node.def->attrs.begin(), node.def->attrs.end(), [&](const AttrDef& def) {
           return def.local && node.attrs.Find(def.name) != nullptr;
         });
}

}  // namespace msrt
