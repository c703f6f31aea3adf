// An estimate of where the nodes of a model would run and how long it would take, without compiling
// it. Converters report it.
#pragma once

#include "core/compile/compiled_model.h"

namespace msrt {

struct GraphEstimate {
  std::vector<NodeExplanation> nodes;  // empty: the graph is unreachable
  double seconds = 0;                  // of one run, control flow included
};
// `module` is the module after the passes; `graphs` has an estimate for each of its graphs.
struct ModuleEstimate {
  Module module;
  std::vector<GraphEstimate> graphs;
};

// Runs the passes and places every graph that a run can reach. No kernel is compiled, so that no
// weight is packed.
Result<ModuleEstimate> EstimateModule(std::shared_ptr<const Environment> environment, Module module,
                                      const CompileOptions& options);

}  // namespace msrt
