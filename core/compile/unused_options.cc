#include "core/compile/unused_options.h"

#include <algorithm>

namespace msrt {

void WarnAboutUnusedPins(const CompiledModel& model) {
  for (const Pin& pin : model.options.place.pins) {
    const bool used = std::any_of(
        model.module.graphs.begin(), model.module.graphs.end(), [&](const Graph& graph) {
          return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                             [&](const Node& node) { return AppliesTo(pin, node); });
        });
    if (!used)
      model.environment->log(LogLevel::kWarning, "pin '", Describe(pin),
                             "' matches no node that is left after the passes");
  }
}

void WarnAboutUnusedReduction(const CompiledModel& model) {
  for (const auto& entry : ProgramsOf(model)) {
    if (entry == nullptr) continue;
    const std::vector<NodeExplanation>& nodes = entry->program->explanations;
    if (std::any_of(nodes.begin(), nodes.end(), [](const NodeExplanation& e) { return e.reduced; }))
      return;
  }
  model.environment->log(
      LogLevel::kWarning,
      "accuracy 'fast' has no effect: nothing here computes this model faster with fewer bits; "
      "precision 'mixed' still keeps activations in bf16");
}

}  // namespace msrt
