// Random valid modules, grown from the op table itself: pick an op, values that fit its parameters
// (or new inputs and constants), attributes within their ranges; a node that inference refuses is
// tried again. Same seed, same module.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace msrt::testing {

struct RandomGraph {
  Module module;                    // one graph of 1 to 20 nodes; unused values are outputs
  std::vector<ConstTensor> inputs;  // for one run
};

RandomGraph MakeRandomGraph(uint64_t seed);

}  // namespace msrt::testing
