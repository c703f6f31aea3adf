#include "ops/streams.h"

namespace msrt {

bool DrawsNumbers(const Node& node) {
  if (node.def == nullptr || node.def->effect != Effect::kRandom || node.def->custom != nullptr)
    return false;
  if (node.op != "Dropout") return true;
  const AttrValue* training = node.attrs.Find("training");
  return training != nullptr && std::get<int64_t>(*training) != 0;
}

bool HasStep(const Node& node) {
  return node.inputs.size() == node.def->inputs.size() && node.inputs.back() != kNoValue;
}

bool IsPure(const Node& node) {
  if (node.def == nullptr) return false;
  if (node.def->effect == Effect::kNone) return true;
  if (node.def->effect != Effect::kRandom || node.def->custom != nullptr) return false;
  return !DrawsNumbers(node) || HasStep(node);
}

FreeStreams::FreeStreams(const Module& module) {
  for (const Graph& graph : module.graphs) {
    for (const Node& node : graph.nodes) {
      if (node.def == nullptr) continue;
      if (!DrawsNumbers(node) && (node.domain != "msrt" || node.op != "DeriveStep")) continue;
      if (const AttrValue* stream = node.attrs.Find("stream"))
        used_.insert(std::get<int64_t>(*stream));
    }
  }
}

int64_t FreeStreams::Take() {
  while (used_.contains(next_)) ++next_;
  return next_++;
}

void AssignStreams(Module* module) {
  std::vector<Node*> nodes;
  for (Graph& graph : module->graphs) {
    for (Node& node : graph.nodes) {
      if (DrawsNumbers(node) && node.attrs.Find("stream") == nullptr) nodes.push_back(&node);
    }
  }
  if (nodes.empty()) return;
  FreeStreams streams(*module);
  for (Node* node : nodes) node->attrs.Set("stream", streams.Take());
}

}  // namespace msrt
