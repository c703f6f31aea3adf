// The border of what a tensor can be.
#pragma once

#include "core/base/dims.h"

namespace msrt {

// No more than kMaxElements, counting open dims as 1. So are zeros, so that nothing adds to or
// loops over 2^63 rows of nothing.
inline bool IsCountable(const Dims& dims) {
  int64_t elements = 1;
  for (int64_t d : dims) {
    if (d > kMaxElements / elements) return false;
    elements *= std::max<int64_t>(d, 1);
  }
  return true;
}

}  // namespace msrt
