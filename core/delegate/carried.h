// What loops carry, seen from their bodies: inputs that a run of the graph hands on to its next
// run.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace msrt {

struct CarriedPair {
  ValueId begin,
      end;  // an input of the body, and the output that takes its place in the next iteration
  bool read_by_condition =
      false;  // a While asks a graph of the host about it before every iteration
};

// By graph of the module: the tensors that can stay where the body makes them, because they are
// named once and not handed on as they came. None for a graph that is an entry, or that is called
// from more places than one: what the others hand to it is not where the loop would keep it.
std::vector<std::vector<CarriedPair>> FindCarried(const Module& module);

}  // namespace msrt
