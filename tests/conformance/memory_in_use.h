// Memory in use by the process, for tests that check for growth.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <fstream>

#if defined(__SANITIZE_ADDRESS__)
extern "C" size_t
__sanitizer_get_current_allocated_bytes();  // of the sanitizer's runtime; GCC has no header for it
#endif

namespace msrt::testing {

// Returns the resident bytes. AddressSanitizer keeps freed memory in quarantine, so with it the
// allocated bytes.
inline size_t MemoryInUse() {
#if defined(__SANITIZE_ADDRESS__)
  return __sanitizer_get_current_allocated_bytes();
#else
  std::ifstream file("/proc/self/statm");
  size_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
#endif
}

}  // namespace msrt::testing
