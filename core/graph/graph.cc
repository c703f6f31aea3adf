#include "core/graph/graph.h"

#include <algorithm>

namespace msrt {
namespace {

void AppendDim(std::string* out, int64_t dim, const Module* module) {
  if (IsKnown(dim)) AppendTo(out, dim);
  else if (IsSymbol(dim) && module != nullptr && SymbolOf(dim) < module->symbols.size()) out->append(module->symbols[SymbolOf(dim)]);
  else if (IsSymbol(dim)) StrAppend(out, "s", SymbolOf(dim));
  else out->push_back('?');
}

void AppendType(std::string* out, const Type& type, const Module* module) {
  if (!type.is_tensor() || !type.rank_known) {
    AppendTo(out, type);
    return;
  }
  AppendTo(out, type.dtype);
  out->push_back('[');
  for (int i = 0; i < type.rank(); ++i) {
    if (i != 0) out->append(", ");
    AppendDim(out, type.dims[i], module);
  }
  out->push_back(']');
}

void AppendValue(std::string* out, const Graph& graph, ValueId id) {
  if (id == kNoValue) {
    out->append("_");
    return;
  }
  const std::string& name = graph.value(id).name;
  if (name.empty()) StrAppend(out, "%", IndexOf(id));
  else StrAppend(out, "%", name);
}

void AppendTyped(std::string* out, const Graph& graph, ValueId id, const Module* module) {
  AppendValue(out, graph, id);
  if (id == kNoValue) return;
  out->append(": ");
  AppendType(out, graph.value(id).type, module);
}

}  // namespace

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

std::string Describe(const Graph& graph, size_t node_index) {
  const Node& n = graph.nodes[node_index];
  return StrCat("node ", node_index, " '", n.name, "' (", OpName(n), ")");
}

std::string Print(const Graph& graph, const Module* module) {
  std::string out = StrCat("graph '", graph.name, "' (");
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    if (i != 0) out += ", ";
    AppendTyped(&out, graph, graph.inputs[i], module);
  }
  out += ") {\n";
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    out += "  ";
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (i != 0) out += ", ";
      AppendTyped(&out, graph, node.outputs[i], module);
    }
    StrAppend(&out, " = ", OpName(node), "(");
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (i != 0) out += ", ";
      AppendValue(&out, graph, node.inputs[i]);
    }
    out += ")";
    const char* separator = " {";
    for (const Attr& a : node.attrs) {
      StrAppend(&out, separator, a.name, "=");
      AppendTo(&out, a.value);
      separator = ", ";
    }
    if (!node.attrs.empty()) out += "}";
    if (!node.name.empty()) StrAppend(&out, "  # ", n, " ", node.name);
    out += "\n";
  }
  out += "  return ";
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    if (i != 0) out += ", ";
    AppendValue(&out, graph, graph.outputs[i]);
  }
  out += "\n}\n";
  return out;
}

std::string Print(const Module& module) {
  std::string out = StrCat("module '", module.name, "' by '", module.producer, "'\n");
  for (const StateSlot& s : module.states) {
    StrAppend(&out, "state '", s.name, "': ");
    AppendType(&out, s.type, &module);
    out += "\n";
  }
  for (size_t g = 0; g < module.graphs.size(); ++g) {
    const bool entry = std::find(module.entries.begin(), module.entries.end(), g) != module.entries.end();
    StrAppend(&out, "#", g, entry ? " entry " : " ");
    out += Print(module.graphs[g], &module);
  }
  return out;
}

}  // namespace msrt
