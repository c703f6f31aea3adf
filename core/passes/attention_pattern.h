// Matches attention as exporters write it, as a chain of nodes, upwards from its last product.
// RecognizeAttention replaces what it finds.
#pragma once

#include <optional>
#include <vector>

#include "core/passes/rewrite.h"

namespace msrt {

struct Attention {
  ValueId query = kNoValue, value = kNoValue;  // [batch..., heads, rows, width]
  ValueId key = kNoValue;
  std::vector<int64_t> key_perm;   // transposes the keys to [batch..., heads, width, rows]
  ValueId mask = kNoValue;         // is added to the scores
  ValueId choice = kNoValue;       // bool mask of the keys that are visible or hidden
  ValueId head_factor = kNoValue;  // constant factor of the scores, one element for each head
  bool chooses_hidden = false;     // `choice` is true for hidden keys
  bool guarded = false;            // NaN in the weights is replaced by zeros
  double scale = 1;
};

// Returns the attention whose last product is node `n`, if the values inside have no other use. The
// caller checks shapes.
std::optional<Attention> FindAttention(const Rewriter& r, size_t n);

}  // namespace msrt
