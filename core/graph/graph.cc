#include "core/graph/graph.h"

#include <algorithm>

namespace msrt {
ValueId Graph::AddValue(std::string value_name, Type type) {
  values_.push_back({std::move(value_name), std::move(type), nullptr});
  return ValueId(static_cast<uint32_t>(values_.size() - 1));
}

ValueId Graph::AddConstant(std::string value_name, ConstTensor data) {
  const ValueId id = AddValue(std::move(value_name), data.type());
  value(id).constant = std::make_shared<const ConstTensor>(std::move(data));
  return id;
}

ValueId Graph::AddInput(std::string value_name, Type type) {
  inputs.push_back(AddValue(std::move(value_name), std::move(type)));
  return inputs.back();
}

std::vector<int32_t> Graph::Producers() const {
  std::vector<int32_t> producers(values_.size(), -1);
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (ValueId v : nodes[n].outputs) {
      if (v != kNoValue) producers[IndexOf(v)] = static_cast<int32_t>(n);
    }
  }
  return producers;
}

std::vector<uint32_t> Graph::UseCounts() const {
  std::vector<uint32_t> uses(values_.size(), 0);
  for (const Node& n : nodes) {
    for (ValueId v : n.inputs) {
      if (v != kNoValue) ++uses[IndexOf(v)];
    }
  }
  for (ValueId v : outputs) ++uses[IndexOf(v)];
  return uses;
}

void Graph::ReplaceUses(ValueId from, ValueId to) {
  for (Node& n : nodes) std::replace(n.inputs.begin(), n.inputs.end(), from, to);
  std::replace(outputs.begin(), outputs.end(), from, to);
}

void Graph::CompactValues() {
  std::vector<ValueId> renumbered(values_.size(), kNoValue);
  std::vector<Value> kept;
  const auto keep = [&](ValueId& v) {
    if (v == kNoValue) return;
    ValueId& target = renumbered[IndexOf(v)];
    if (target == kNoValue) {
      target = ValueId(static_cast<uint32_t>(kept.size()));
      kept.push_back(std::move(values_[IndexOf(v)]));
    }
    v = target;
  };
  for (ValueId& v : inputs) keep(v);
  for (Node& n : nodes) {
    for (ValueId& v : n.inputs) keep(v);
    for (ValueId& v : n.outputs) keep(v);
  }
  for (ValueId& v : outputs) keep(v);
  values_ = std::move(kept);
}

int64_t Module::SymbolFor(std::string_view symbol_name) {
  const auto it = std::find(symbols.begin(), symbols.end(), symbol_name);
  const auto index = static_cast<uint32_t>(it - symbols.begin());
  if (it == symbols.end()) symbols.emplace_back(symbol_name);
  return SymbolDim(index);
}

std::string_view StateRoleName(StateRole role) {
  constexpr std::string_view kNames[] = {"cache", "parameter", "optimizer", "statistic"};
  static_assert(std::size(kNames) == kStateRoleCount);
  return kNames[static_cast<size_t>(role)];
}

std::string Describe(const Graph& graph, size_t node_index) {
  const Node& n = graph.nodes[node_index];
  return StrCat("node ", node_index, " '", n.name, "' (", OpName(n), ")");
}

}  // namespace msrt
