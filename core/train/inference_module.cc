#include "core/train/inference_module.h"

#include <algorithm>

#include "core/train/training_module.h"

namespace msrt {
namespace {

bool IsStateNode(const Node& node, std::string_view op) {
  return node.domain == "msrt" && node.op == op;
}

// Requires a validated state node.
size_t SlotOfNode(const Node& node) {
  return static_cast<size_t>(std::get<int64_t>(*node.attrs.Find("slot")));
}

// The numbers that the remaining slots get; -1 for those that go.
std::vector<int64_t> KeepCaches(Module* module) {
  std::vector<int64_t> numbers;
  std::vector<StateSlot> kept;
  for (StateSlot& slot : module->states) {
    const bool keep = slot.role == StateRole::kCache;
    numbers.push_back(keep ? static_cast<int64_t>(kept.size()) : -1);
    if (keep) kept.push_back(std::move(slot));
  }
  module->states = std::move(kept);
  return numbers;
}

// Makes the reads of slots that go constants, drops their writes and renumbers the others.
Status ReplaceReads(const Module& training, const std::vector<int64_t>& numbers,
                    const std::function<Result<ConstTensor>(const std::string&)>& value_of,
                    Graph* graph) {
  std::vector<Node> nodes;
  std::vector<std::pair<ValueId, ValueId>> replaced;
  for (Node& node : graph->nodes) {
    const bool reads = IsStateNode(node, "StateRead");
    const bool goes = (reads || IsStateNode(node, "StateWrite")) && numbers[SlotOfNode(node)] < 0;
    if (goes && reads) {
      MSRT_ASSIGN_OR_RETURN(ConstTensor value, value_of(training.states[SlotOfNode(node)].name));
      const std::string name = graph->value(node.outputs[0]).name;
      replaced.emplace_back(node.outputs[0], graph->AddConstant(name, std::move(value)));
    }
    if (goes) continue;
    if (reads || IsStateNode(node, "StateWrite")) node.attrs.Set("slot", numbers[SlotOfNode(node)]);
    nodes.push_back(std::move(node));
  }
  graph->nodes = std::move(nodes);
  for (const auto& [from, to] : replaced) graph->ReplaceUses(from, to);
  graph->CompactValues();
  return OkStatus();
}

}  // namespace

Result<Module> MakeInferenceModule(
    const Module& training,
    const std::function<Result<ConstTensor>(const std::string&)>& value_of) {
  MSRT_ASSIGN_OR_RETURN(const size_t eval, FindEntry(training, kEvalEntry));
  Module module = training;
  const uint32_t kept = training.entries[eval];
  module.entries = {kept};
  // Graphs of other entries would keep their slots; those that eval calls stay where they are.
  for (size_t e = 0; e < training.entries.size(); ++e) {
    if (training.entries[e] == kept) continue;
    Graph empty;
    empty.name = training.graphs[training.entries[e]].name;
    module.graphs[training.entries[e]] = std::move(empty);
  }
  const std::vector<int64_t> numbers = KeepCaches(&module);
  for (Graph& graph : module.graphs)
    MSRT_RETURN_IF_ERROR(ReplaceReads(training, numbers, value_of, &graph));
  const std::string_view name = MetadataOf(training, kTrainingKey);
  if (!name.empty()) module.name = name;
  module.metadata.erase(std::remove_if(module.metadata.begin(), module.metadata.end(),
                                       [](const auto& m) {
                                         return m.first == kTrainingKey ||
                                                m.first == kAccumulationKey ||
                                                m.first == kFreezingKey;
                                       }),
                        module.metadata.end());
  return module;
}

}  // namespace msrt
