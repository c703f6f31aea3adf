// Finds branches that always fail. A model that treats inputs of several sizes in different
// branches has, once the size is fixed, branches whose ops do not fit it and fail when they run.
// MindSpore infers the types of all branches before it runs any, so it must not see such ops.
#pragma once

#include <span>
#include <string>

#include "core/graph/graph.h"

namespace msrt::mindir_export {

// Returns why a graph fails for every content of the `arguments`, which are values of `caller`;
// empty if it may succeed. Types and constants of the arguments are taken into account.
std::string CertainFailure(const Module& module, uint32_t graph, const Graph& caller,
                           std::span<const ValueId> arguments);

}  // namespace msrt::mindir_export
