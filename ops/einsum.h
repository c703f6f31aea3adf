// The indices of an Einsum: which are axes of the output, which are summed, and which index each
// dim of an operand follows. Read from the equation once and used by inference, iteration spaces
// and kernels.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op_view.h"

namespace msrt {

struct EinsumPlan {
  int output_rank = 0;  // the first output_rank indices are axes of the output, the rest is summed
  std::vector<int64_t> extents;            // of each index; unknown ones as in Dims
  std::vector<std::vector<int>> operands;  // by operand and dim: the index that it follows

  int index_count() const { return static_cast<int>(extents.size()); }
};

// Requires operands of known rank. Dims of 1 match any extent of their index.
Result<EinsumPlan> PlanEinsum(std::string_view equation, std::span<const Type* const> operands);

// Returns the rank of the output when the ranks of operands are unknown, -1 if it depends on them.
// Errors are those of the equation alone.
Result<int> EinsumOutputRank(std::string_view equation, size_t operand_count);

}  // namespace msrt
