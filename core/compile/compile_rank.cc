#include "core/compile/compile_rank.h"

#include "core/compile/estimate.h"

namespace msrt {

Result<RankModel> CompileRank(std::shared_ptr<const Environment> environment, Module module,
                              size_t entry, std::span<const Dims> inputs,
                              const CompileOptions& options, const SplitOptions& split, int rank) {
  if (entry >= module.entries.size())
    return NotFound("entry ", entry, " does not exist; the model has ", module.entries.size());
  CompileOptions whole = options;
  const Graph& graph = module.graphs[module.entries[entry]];
  for (size_t i = 0; i < std::min(inputs.size(), graph.inputs.size()); ++i)
    whole.typical.emplace_back(graph.value(graph.inputs[i]).name, inputs[i]);
  MSRT_ASSIGN_OR_RETURN(const ModuleEstimate estimate,
                        EstimateModule(environment, std::move(module), whole));
  SplitOptions choices = split;
  if (options.place.exact) {
    for (const NodeExplanation& node : estimate.graphs[estimate.module.entries[entry]].nodes) {
      choices.arithmetics.push_back(node.arithmetic);
      choices.granules.push_back(node.granule);
    }
  }
  RankModel result;
  MSRT_ASSIGN_OR_RETURN(
      result.split, Split(estimate.module, entry, inputs, *environment->evaluator, choices, rank));
  CompileOptions local = options;
  local.passes.disabled = {"all"};  // they have run; pieces of one node must stay alike
  local.typical.clear();
  MSRT_ASSIGN_OR_RETURN(
      result.model, CompileModule(std::move(environment), std::move(result.split.module), local));
  return result;
}

}  // namespace msrt
