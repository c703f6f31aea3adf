#include "core/compile/compile_rank.h"

#include "core/compile/estimate.h"

namespace msrt {

namespace {

// The module as all ranks split it, and the options of the split.
struct WholeModule {
  Module module;
  SplitOptions split;
};

Result<WholeModule> OptimizeWhole(std::shared_ptr<const Environment> environment, Module module,
                                  size_t entry, std::span<const Dims> inputs,
                                  const CompileOptions& options, const SplitOptions& split) {
  if (entry >= module.entries.size())
    return NotFound("entry ", entry, " does not exist; the model has ", module.entries.size());
  CompileOptions whole = options;
  const Graph& graph = module.graphs[module.entries[entry]];
  for (size_t i = 0; i < std::min(inputs.size(), graph.inputs.size()); ++i)
    whole.typical.emplace_back(graph.value(graph.inputs[i]).name, inputs[i]);
  MSRT_ASSIGN_OR_RETURN(ModuleEstimate estimate,
                        EstimateModule(std::move(environment), std::move(module), whole));
  WholeModule result{{}, split};
  if (options.place.exact) {
    for (const NodeExplanation& node : estimate.graphs[estimate.module.entries[entry]].nodes) {
      result.split.arithmetics.push_back(node.arithmetic);
      result.split.granules.push_back(node.granule);
    }
  }
  result.module = std::move(estimate.module);
  return result;
}

}  // namespace

Result<RankModel> CompileRank(std::shared_ptr<const Environment> environment, Module module,
                              size_t entry, std::span<const Dims> inputs,
                              const CompileOptions& options, const SplitOptions& split, int rank) {
  MSRT_ASSIGN_OR_RETURN(
      const WholeModule whole,
      OptimizeWhole(environment, std::move(module), entry, inputs, options, split));
  RankModel result;
  MSRT_ASSIGN_OR_RETURN(result.split, Split(whole.module, entry, inputs, *environment->evaluator,
                                            whole.split, rank));
  CompileOptions local = options;
  local.passes.disabled = {"all"};  // they have run; pieces of one node must stay alike
  local.typical.clear();
  MSRT_ASSIGN_OR_RETURN(
      result.model, CompileModule(std::move(environment), std::move(result.split.module), local));
  return result;
}

Result<std::vector<RankModule>> PlanRanks(std::shared_ptr<const Environment> environment,
                                          Module module, size_t entry, std::span<const Dims> inputs,
                                          const CompileOptions& options,
                                          const SplitOptions& split) {
  MSRT_ASSIGN_OR_RETURN(const int ranks, RanksOf(split));
  MSRT_ASSIGN_OR_RETURN(
      const WholeModule whole,
      OptimizeWhole(environment, std::move(module), entry, inputs, options, split));
  std::vector<RankModule> all;
  for (int rank = 0; rank < ranks; ++rank) {
    MSRT_ASSIGN_OR_RETURN(RankModule one, Split(whole.module, entry, inputs,
                                                *environment->evaluator, whole.split, rank));
    one.module = {};
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace msrt
