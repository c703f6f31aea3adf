// Versioned structs of the C ABI: each begins with struct_size, the size that its caller knows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace msrt {

// Returns a copy of the fields that both the caller and this build know; all others are null.
template <typename Struct>
Struct CopyKnownFields(const Struct& given) {
  Struct copy{};
  std::memcpy(static_cast<void*>(&copy), &given,
              std::min<size_t>(given.struct_size, sizeof(Struct)));
  return copy;
}

}  // namespace msrt
