// The chain of nodes that is an attention, as exporters write it, found from its last product
// upwards.
#pragma once

#include <optional>
#include <vector>

#include "core/passes/rewrite.h"

namespace msrt {

struct Attention {
  ValueId query = kNoValue, value = kNoValue;  // [batch..., heads, rows, width]
  ValueId key = kNoValue;
  std::vector<int64_t> key_perm;  // turns the keys into [batch..., heads, width, rows]
  ValueId mask = kNoValue;        // added
  ValueId choice = kNoValue;      // keys that are seen, or not
  ValueId head_factor =
      kNoValue;  // a constant that multiplies the scores, with one element for each head
  bool chooses_hidden = false;
  bool guarded = false;  // NaN in the weights is replaced by zeros
  double scale = 1;
};

// The attention whose last product is node `n`, if the values inside have no other use. Shapes are
// the caller's to check.
std::optional<Attention> FindAttention(const Rewriter& r, size_t n);

}  // namespace msrt
