// Misuse by the host that on a real device would cause wrong results or hang. It is counted for the
// whole process, so that a test can check it at its end.
#pragma once

#include <cstddef>
#include <string>

#include "core/abi/msrt.h"

namespace accelerator {

void CountMisuse(const std::string& what);

}  // namespace accelerator

// Returns their number since the library was loaded; the text of the last goes to `last`, truncated
// to `bytes`.
extern "C" MSRT_API size_t msrt_accelerator_misuses(char* last, size_t bytes);
