// Random operations with known results: all ranks draw the same operations from one seed, and each
// computes from the same seed what it must receive.
#pragma once

#include <string>

#include "core/comm/communicator.h"

namespace msrt {

struct RandomOperations {
  unsigned seed = 0;
  int count = 100;
  size_t max_bytes = 20000;
  bool delays = true;
  CommOrder order = CommOrder::kFixedTree;
};

// Runs the operations and returns the first problem. Every rank calls it.
std::string RunRandomOperations(Communicator& comm, const RandomOperations& options);

}  // namespace msrt
