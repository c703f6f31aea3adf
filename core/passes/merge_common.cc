#include "core/passes/merge_common.h"

#include <cstring>
#include <unordered_map>

namespace msrt {
namespace {

// Larger constants are compared by address only: loading must not read all weights.
constexpr size_t kComparedBytes = 4096;

std::string ConstantKey(const ConstTensor& t) {
  std::string key = StrCat(t.type(), ":");
  if (t.bytes.size() <= kComparedBytes)
    key.append(reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size());
  else StrAppend(&key, "@", reinterpret_cast<uint64_t>(t.bytes.data()));
  return key;
}

std::string NodeKey(const Node& node) {
  std::string key = StrCat(node.domain, ".", node.op, "/", node.outputs.size());
  if (node.region != 0) StrAppend(&key, "/region ", node.region);
  for (ValueId v : node.inputs) StrAppend(&key, ",", IndexOf(v));
  for (const Attr& a : node.attrs) {
    StrAppend(&key, ";", a.name, "=");
    if (const auto* tensor = std::get_if<ConstTensor>(&a.value)) key += ConstantKey(*tensor);
    else AppendTo(&key, a.value);
  }
  return key;
}

}  // namespace

Status MergeCommon(const PassContext&, Graph* graph) {
  // An output keeps its own value: users of the model know it by name.
  std::vector<char> is_output(graph->value_count());
  for (ValueId v : graph->outputs) is_output[IndexOf(v)] = true;
  std::vector<ValueId> merged(graph->value_count());
  std::unordered_map<std::string, ValueId> constants;
  for (uint32_t v = 0; v < graph->value_count(); ++v) {
    merged[v] = ValueId(v);
    const Value& value = graph->value(ValueId(v));
    if (value.constant != nullptr && !is_output[v])
      merged[v] = constants.emplace(ConstantKey(*value.constant), ValueId(v)).first->second;
  }
  const auto representative = [&](ValueId v) { return v == kNoValue ? v : merged[IndexOf(v)]; };
  std::unordered_map<std::string, size_t> seen;
  std::vector<Node> kept;
  for (Node& node : graph->nodes) {
    for (ValueId& v : node.inputs) v = representative(v);
    if (IsPure(node)) {
      const auto [it, is_new] = seen.emplace(NodeKey(node), kept.size());
      const Node* twin = is_new ? nullptr : &kept[it->second];
      // The twin may lack an output that this node has.
      bool covers = twin != nullptr;
      for (size_t i = 0; covers && i < node.outputs.size(); ++i) {
        const ValueId v = node.outputs[i];
        covers = v == kNoValue || (twin->outputs[i] != kNoValue && !is_output[IndexOf(v)]);
      }
      if (covers) {
        for (size_t i = 0; i < node.outputs.size(); ++i) {
          if (node.outputs[i] != kNoValue) merged[IndexOf(node.outputs[i])] = twin->outputs[i];
        }
        continue;
      }
    }
    kept.push_back(std::move(node));
  }
  graph->nodes = std::move(kept);
  return OkStatus();
}

}  // namespace msrt
