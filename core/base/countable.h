// The element-count limit of a tensor, checked wherever dims come from outside.
#pragma once

#include "core/base/dims.h"

namespace msrt {

// True if the tensor has at most kMaxElements. Unknown dims count as 1, and so do zeros: otherwise
// code could loop over 2^63 empty rows.
inline bool IsCountable(const Dims& dims) {
  int64_t elements = 1;
  for (int64_t d : dims) {
    if (d > kMaxElements / elements) return false;
    elements *= std::max<int64_t>(d, 1);
  }
  return true;
}

}  // namespace msrt
