// Facts about training modules: their entries, and what is known of their outputs.
#include <algorithm>

#include "core/train/training_module.h"

namespace msrt {

std::string EntryOfStage(std::string_view entry, int stage) {
  return stage == 0 ? std::string(entry) : StrCat(entry, ".", stage);
}

std::string_view MetadataOf(const Module& module, std::string_view key) {
  for (const auto& [name, value] : module.metadata) {
    if (name == key) return value;
  }
  return {};
}

Result<size_t> FindEntry(const Module& module, std::string_view name) {
  std::string names;
  for (size_t e = 0; e < module.entries.size(); ++e) {
    const std::string& entry = module.graphs[module.entries[e]].name;
    if (entry == name) return e;
    names += StrCat(names.empty() ? "" : ", ", entry);
  }
  return InvalidArgument("model '", module.name, "' has no entry '", name, "', only ", names);
}

bool HasClassTargets(const Module& training) {
  const Result<size_t> entry = FindEntry(training, kTestEntry);
  if (!entry.ok()) return false;
  const Graph& graph = training.graphs[training.entries[*entry]];
  return std::any_of(graph.outputs.begin(), graph.outputs.end(),
                     [&](ValueId v) { return graph.value(v).name == "correct"; });
}

int64_t OutputClasses(const Module& training) {
  const Result<size_t> eval = FindEntry(training, kEvalEntry);
  if (!eval.ok()) return 0;
  const Graph& graph = training.graphs[training.entries[*eval]];
  const Type& scores = graph.value(graph.outputs[0]).type;
  return scores.rank_known && scores.rank() > 1 && IsKnown(scores.dims[1]) ? scores.dims[1] : 0;
}

bool HasProbabilities(const Graph& graph) {
  if (graph.outputs.empty()) return false;
  for (const Node& node : graph.nodes) {
    if (!node.outputs.empty() && node.outputs[0] == graph.outputs[0])
      return node.domain.empty() && node.op == "Softmax";
  }
  return false;
}

}  // namespace msrt
