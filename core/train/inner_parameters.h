// Parameters inside control flow: weights that are constants of branches, loop bodies and other
// called graphs move to the main graph, which passes them on, so that they train like its own.
#pragma once

#include <vector>

#include "core/graph/graph.h"
#include "core/train/parameters.h"

namespace msrt {

class OpSet;  // ops/registry.h

// Resolves functions as values as far as their graphs are known, then moves weights. An error names
// a node that cannot train where it is: one that draws random numbers inside a called graph, or a
// weight of a graph that is called through a function. Requires and leaves a validated module whose
// only entry is the main graph. Returns the constants of the main graph that it reads or passes on
// as weights.
Result<std::vector<ValueId>> MoveInnerParameters(Module* module, const OpSet* ops);

// An error names a BatchNormalization of a called graph whose scale is one of the parameters, since
// it would not normalise with the statistics of the batch.
Status CheckInnerNorms(const Module& module, const std::vector<Parameter>& parameters);

}  // namespace msrt
