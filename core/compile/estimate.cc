#include "core/compile/estimate.h"

#include "core/compile/graph_compiler.h"
#include "core/compile/optimize.h"

namespace msrt {

Result<ModuleEstimate> EstimateModule(std::shared_ptr<const Environment> environment, Module module,
                                      const CompileOptions& options) {
  CompiledModel model;
  model.environment = std::move(environment);
  model.module = std::move(module);
  model.options = options;
  model.parallel = model.environment->parallel;
  MSRT_RETURN_IF_ERROR(ValidateAndOptimize(&model));
  MSRT_ASSIGN_OR_RETURN(ReachableGraphs reachable, FindReachableGraphs(model));
  MSRT_RETURN_IF_ERROR(GraphCompiler::AddEntries(std::move(reachable.graphs), &model));
  const Environment& env = *model.environment;
  const Host host(env.allocator, model.parallel, env.log, MachineForCosts(model, options.place),
                  nullptr);
  ControlPrices prices(host, env.delegates, model.options.place);
  ModuleEstimate estimate;
  estimate.graphs.resize(model.module.graphs.size());
  for (uint32_t g = 0; g < model.views.size(); ++g) {
    if (model.views[g] == nullptr) continue;
    Placer placer(*model.views[g], host, env.delegates, model.options.place, &prices);
    MSRT_RETURN_IF_ERROR(WithGraphName(placer.Query(), model.module, g));
    auto placement = placer.Place();
    if (!placement.ok()) return WithGraphName(std::move(placement).status(), model.module, g);
    estimate.graphs[g] = {std::move(placement->explanations), placement->seconds};
  }
  model.views.clear();  // the views point into the module
  estimate.module = std::move(model.module);
  return estimate;
}

}  // namespace msrt
