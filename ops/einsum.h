// The indices of an Einsum: which run over the output, which are summed, and how the dims of each
// operand follow them. Read from the equation once and used by inference, iteration spaces and
// kernels.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op_view.h"

namespace msrt {

struct EinsumPlan {
  int output_rank =
      0;  // the first so many indices are the axes of the output; the others are summed
  std::vector<int64_t> extents;  // of each index; unknown ones as in Dims
  std::vector<std::vector<int>>
      operands;  // for each operand and each of its dims: the index that it follows

  int index_count() const { return static_cast<int>(extents.size()); }
};

// Requires operands of known rank. Dims of 1 go with any extent of their index.
Result<EinsumPlan> PlanEinsum(std::string_view equation, std::span<const Type* const> operands);

// How many axes the output has when ranks are unknown; -1 where that depends on them. Also says
// what is wrong with the equation alone.
Result<int> EinsumOutputRank(std::string_view equation, size_t operand_count);

}  // namespace msrt
