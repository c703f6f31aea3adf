// Copies between boxes of memory with any steps: what Transpose, Slice, Split, Concat and Expand
// come down to.
#pragma once

#include <vector>

#include "delegates/cpu/rule.h"

namespace msrt::cpu {

// output[to_offset + sum i_k * to_k] = input[from_offset + sum i_k * from_k] for all i below dims;
// steps in elements.
struct Move {
  size_t input = 0, output = 0;
  Dims dims = {}, from = {}, to = {};
  int64_t from_offset = 0, to_offset = 0;
};

// Runs moves one after the other, each on all threads. Elements have `width` bytes: 1, 2, 4 or 8. A
// move between the same memory on both sides, with equal steps, does nothing.
std::unique_ptr<BoundKernel> MakeMoves(std::vector<Move> moves, size_t width);

}  // namespace msrt::cpu
