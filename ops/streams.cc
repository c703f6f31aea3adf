#include "ops/streams.h"

namespace msrt {
namespace {

std::optional<size_t> FindParameter(const OpDef& def, std::string_view name) {
  for (size_t i = 0; i < def.inputs.size(); ++i) {
    if (def.inputs[i].name == name) return i;
  }
  return std::nullopt;
}

}  // namespace

bool DrawsNumbers(const Node& node) {
  if (node.def == nullptr || node.def->effect != Effect::kRandom || node.def->custom != nullptr)
    return false;
  if (node.op != "Dropout") return true;
  const AttrValue* training = node.attrs.Find("training");
  return training != nullptr && std::get<int64_t>(*training) != 0;
}

size_t StepInput(const OpDef& def) {
  const std::optional<size_t> step = FindParameter(def, "step");
  MSRT_CHECK(step.has_value());  // every op of ops/random.cc has one
  return *step;
}

std::optional<size_t> PositionInput(const OpDef& def) { return FindParameter(def, "position"); }

bool HasStep(const Node& node) {
  const size_t step = StepInput(*node.def);
  return step < node.inputs.size() && node.inputs[step] != kNoValue;
}

void SetInput(Node* node, size_t input, ValueId value) {
  if (node->inputs.size() <= input) node->inputs.resize(input + 1, kNoValue);
  node->inputs[input] = value;
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
