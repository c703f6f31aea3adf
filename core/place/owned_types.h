// Output sizes of control flow, where they follow from the sizes of its inputs: then memory can be
// planned before it runs.
#pragma once

#include <optional>
#include <vector>

#include "core/base/parallel_for.h"
#include "core/delegate/offered_graph.h"

namespace msrt {

// The maximum depth of nested calls. No real model goes deeper, and the bound makes recursion over
// graphs safe.
inline constexpr int kMaxOwnedLevels = 64;

// Returns the types of the node's outputs for inputs of these types, every dim known. None if they
// depend on data: branches that differ, a loop that changes the size of a carried value or collects
// a slice per iteration.
std::optional<std::vector<Type>> OwnedResults(const OfferedGraph& graph, const Node& node,
                                              FunctionRef<Type(ValueId)> type_of);

// Whether OwnedResults returns types for all values of the inputs' open dims.
bool SizesFollow(const OfferedGraph& graph, const Node& node);

}  // namespace msrt
