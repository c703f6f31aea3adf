// Where the nodes of a model would run and how long it would take, without compiling it: what a
// converter tells about speed.
#pragma once

#include "core/compile/compiled_model.h"

namespace msrt {

struct GraphEstimate {
  std::vector<NodeExplanation> nodes;  // none: no run reaches the graph
  double seconds = 0;                  // of one run, control flow included
};
// `graphs` is by graph of `module`, which is as the passes left it.
struct ModuleEstimate {
  Module module;
  std::vector<GraphEstimate> graphs;
};

// Runs the passes and places every graph that a run can reach. No kernel is compiled, so that no
// weight is packed.
Result<ModuleEstimate> EstimateModule(std::shared_ptr<const Environment> environment, Module module,
                                      const CompileOptions& options);

}  // namespace msrt
