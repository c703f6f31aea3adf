// The values that a candidate reads and makes: the inputs and outputs of its kernel, in the order
// of msrt_candidate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/abi/msrt_plugin.h"

namespace msrt::sdk {

// Input or output `port` of the candidate's node number `node`.
struct Port {
  uint32_t node, port;
};

struct Border {
  std::vector<Port> inputs, outputs;
};

Border BorderOf(const msrt_graph_view& graph, std::span<const uint32_t> nodes);

}  // namespace msrt::sdk
