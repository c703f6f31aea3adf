// Nodes that the accelerator offers together: chains in which only the next node reads the one
// result of each node. Nothing inside a chain returns to the host, and one launch runs all of it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/abi/msrt_plugin.h"

namespace accelerator {

using Chain = std::vector<uint32_t>;  // nodes, ascending

const msrt_node_view& NodeAt(const msrt_graph_view& graph, size_t index);

// Returns all chains of 2 to `max_nodes` nodes among the supported ones.
std::vector<Chain> FindChains(const msrt_graph_view& graph, const std::vector<bool>& supported,
                              size_t max_nodes);

// The sources and destinations of the inputs and outputs of a candidate's nodes.
struct Wiring {
  // A tensor of the candidate's inputs or outputs, one that stays inside, or none.
  struct Place {
    enum Kind : uint8_t { kNone, kInput, kOutput, kInside } kind = kNone;
    uint32_t index = 0;
  };
  struct NodePlaces {
    std::vector<Place> inputs, outputs;
  };
  std::vector<NodePlaces> nodes;
  uint32_t input_count = 0, output_count = 0, inside_count = 0;
};
// Numbers inputs and outputs in the order of msrt_candidate, for one node or a chain.
Wiring WiringOf(const msrt_graph_view& graph, const uint32_t* nodes, size_t node_count);

}  // namespace accelerator
