// How a model uses its parameters: in which order, and along which axes they sum.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/graph.h"

namespace msrt {

// Returns positions in `parameters`, those first that earlier nodes of the graph use.
std::vector<size_t> OrderOfUse(const Graph& graph, const std::vector<ValueId>& parameters);

// For each parameter the axes along which products and convolutions sum: all but that of their
// outputs. Empty for others, such as biases, scales and embeddings.
std::vector<std::vector<int64_t>> SummedAxes(const Graph& graph,
                                             const std::vector<ValueId>& parameters);

}  // namespace msrt
