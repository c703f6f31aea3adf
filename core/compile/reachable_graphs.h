// The graphs of a module that a run can reach from its entries, offered to delegates at typical
// shapes.
#pragma once

#include "core/compile/compiled_model.h"

namespace msrt {

// `typical` has the dims of the graph's inputs that it is placed for.
struct ReachableGraph {
  uint32_t graph;
  std::vector<Dims> typical;
  std::unique_ptr<OfferedGraph> offered;
};

// The result of FindReachableGraphs. `seconds_saved` is the time that several threads save in one
// run of the graph that gains most.
struct ReachableGraphs {
  std::vector<ReachableGraph> graphs;
  double seconds_saved = 0;
};

// A graph that others call is placed for the arguments of its first caller.
Result<ReachableGraphs> FindReachableGraphs(const CompiledModel& model);

// Whether the size of every run is known before it starts.
bool InputsAreKnown(const CompiledModel& model);

// Prefixes the graph's name if the module has several.
Status WithGraphName(Status status, const Module& module, uint32_t graph);

}  // namespace msrt
