// Brings a module into the form in which as much of it as possible can be differentiated. To be
// called before the values that AddGradients gets are chosen: nodes and values may be replaced.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace msrt {

class OpSet;  // ops/registry.h

// Gives random ops their steps, so that what is computed again draws the same numbers, and turns
// calls of functions into calls of graphs where the graph is known. Requires and leaves a validated
// module.
Status PrepareForGradients(Module* module, const OpSet* ops = nullptr);
// The second half of it alone, where random ops have their steps or there are none.
Status ResolveFunctionsForGradients(Module* module, const OpSet* ops = nullptr);

// Reads state slots once, at the beginning of graph `graph`, and passes the values to the graphs
// that it calls, so that gradients with respect to parameters that are read anywhere are gradients
// with respect to the values returned, one for each slot. An error if the graph or one that it
// calls writes such a slot, or if one that reads it is an entry or is called through a function,
// whose inputs cannot change. Requires and leaves a validated module.
Result<std::vector<ValueId>> ReadStateOnce(Module* module, uint32_t graph,
                                           const std::vector<uint32_t>& slots,
                                           const OpSet* ops = nullptr);

}  // namespace msrt
