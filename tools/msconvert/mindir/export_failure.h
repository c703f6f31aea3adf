// Branches that cannot be taken. A model that chooses by a number what to do with inputs of several
// sizes has, once a size is fixed, branches whose ops do not fit it: they fail when they run.
// MindSpore types all branches before it runs any, so it must not see such ops.
#pragma once

#include <span>
#include <string>

#include "core/graph/graph.h"

namespace msrt::mindir_export {

// Why a graph cannot run to its end on such arguments, whatever they hold; empty: it may. What
// `arguments` of `caller` are is known to it.
std::string CertainFailure(const Module& module, uint32_t graph, const Graph& caller,
                           std::span<const ValueId> arguments);

}  // namespace msrt::mindir_export
