// Offsets of the elements of a broadcast tensor: strides are 0 along the dims it is repeated in.
#pragma once

#include <cstdint>

#include "core/base/dims.h"

namespace msrt::reference {

// Strides, one for each dim of `to`, of a dense tensor of `dims` that broadcasts to it. Requires
// that it does.
inline Dims BroadcastStrides(const Dims& dims, const Dims& to) {
  const Dims dense = RowMajorStrides(dims);
  Dims strides = Dims::Filled(to.rank(), 0);
  const int shift = to.rank() - dims.rank();
  for (int i = 0; i < dims.rank(); ++i) strides[shift + i] = dims[i] == 1 ? 0 : dense[i];
  return strides;
}

// Returns the offset of the `index`-th element (row-major) of a tensor of `dims` with `strides`.
// Requires index < dims.elements().
inline int64_t OffsetOf(int64_t index, const Dims& dims, const Dims& strides) {
  int64_t offset = 0;
  for (int i = dims.rank() - 1; i >= 0; --i) {
    offset += index % dims[i] * strides[i];
    index /= dims[i];
  }
  return offset;
}

}  // namespace msrt::reference
