// Assigns offsets in one arena to blocks with known lifetimes, so that blocks alive at the same
// time never overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace msrt {

struct LiveBlock {
  size_t bytes = 0;
  uint32_t first = 0, last = 0;  // alive during steps [first, last]
};

struct MemoryPlan {
  std::vector<size_t> offsets;  // one for each block, multiples of kTensorAlignment
  size_t arena_bytes = 0;
  size_t lower_bound_bytes = 0;  // peak of live bytes: no plan can be smaller
};

// Greedy: blocks in an order of decreasing weight, each into the smallest gap that holds it. Tries
// orders by size, by lifetime and by breadth, and stops at the first that reaches the lower bound.
// Takes time in proportion to the pairs of blocks that are alive together, and to the lifetimes.
MemoryPlan PlanMemory(std::span<const LiveBlock> blocks);

}  // namespace msrt
