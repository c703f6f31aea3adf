// Structs of the C ABI that begin with struct_size: what both sides know of one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace msrt {

// As much of a caller's struct as this build knows; fields that the caller's release lacks are
// null.
template <typename Struct>
Struct CopyKnownFields(const Struct& given) {
  Struct copy{};
  std::memcpy(static_cast<void*>(&copy), &given,
              std::min<size_t>(given.struct_size, sizeof(Struct)));
  return copy;
}

}  // namespace msrt
