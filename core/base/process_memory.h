// How much memory this process has held.
#pragma once

#include <cstdint>

namespace msrt {

// The most resident memory since the program started, in bytes; 0 if the system does not report it.
// getrusage would also count the process that started it, before the program was loaded.
uint64_t PeakResidentMemory();

}  // namespace msrt
