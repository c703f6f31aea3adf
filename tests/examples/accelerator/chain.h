// Which nodes the accelerator offers together: chains in which each node's one result is read by
// the next node alone. Inside a chain nothing comes back to the host, and one launch does for all.
#pragma once

#include <cstdint>
#include <vector>

#include "core/abi/msrt_plugin.h"

namespace accelerator {

using Chain = std::vector<uint32_t>;  // nodes, ascending

const msrt_node_view& NodeAt(const msrt_graph_view& graph, size_t index);

// All chains of 2 to `most` nodes among the supported ones.
std::vector<Chain> FindChains(const msrt_graph_view& graph, const std::vector<bool>& supported,
                              size_t most);

// Where the inputs and outputs of the nodes of a candidate come from and go to.
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
// As msrt_candidate orders the inputs and outputs of one node, or of a chain.
Wiring WiringOf(const msrt_graph_view& graph, const uint32_t* nodes, size_t node_count);

}  // namespace accelerator
