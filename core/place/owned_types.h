// The sizes of what control flow gives, where they follow from the sizes that it is given: then
// memory can wait for it before it runs.
#pragma once

#include <optional>
#include <vector>

#include "core/base/parallel_for.h"
#include "core/delegate/offered_graph.h"

namespace msrt {

// Of calls in calls. Deeper ones exist in no model that anybody wrote, and whoever walks graphs may
// do so by calling itself.
inline constexpr int kMostOwnedLevels = 64;

// The types of the node's outputs for inputs of these types, every dim known; none where data
// decides: branches that differ, a loop that changes the size of what it carries or gathers as many
// slices as it runs.
std::optional<std::vector<Type>> OwnedResults(const OfferedGraph& graph, const Node& node,
                                              FunctionRef<Type(ValueId)> type_of);

// Whether there are such types whatever the open dims of the inputs turn out to be.
bool SizesFollow(const OfferedGraph& graph, const Node& node);

}  // namespace msrt
