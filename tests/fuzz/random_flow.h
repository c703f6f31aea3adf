// Random modules of graphs that call each other: branches, switches, loops of all kinds, calls,
// functions as values, tail recursion, state and random numbers, nested. Same seed, same module.
// Every run ends and succeeds, and floats never decide about control flow, so that two ways to
// compute a module can be compared bit by bit.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace msrt::testing {

struct RandomFlow {
  Module module;
  std::vector<ConstTensor> inputs;  // for one run
};

// Smooth modules can be differentiated: floats are double, results are smooth and bounded functions
// of float inputs, at least one is a float, nothing is written to state and nothing is random.
enum class FlowKind : uint8_t { kAny, kSmooth };

RandomFlow MakeRandomFlow(uint64_t seed, FlowKind kind = FlowKind::kAny);

}  // namespace msrt::testing
