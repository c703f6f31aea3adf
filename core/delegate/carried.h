// Loop-carried values, seen from the loop body: outputs of one iteration that are inputs of the
// next.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace msrt {

struct CarriedPair {
  ValueId begin,
      end;  // an input of the body, and the output that takes its place in the next iteration
  bool read_by_condition =
      false;  // the condition of a While, which runs on the host, reads it before every iteration
};

// Returns, by graph of the module, the carried tensors that can stay on the device where the body
// makes them: each is named once among the outputs and is not passed through unchanged. A graph
// that is an entry or has several callers has none: the other callers pass values that are not on
// that device.
std::vector<std::vector<CarriedPair>> FindCarried(const Module& module);

}  // namespace msrt
