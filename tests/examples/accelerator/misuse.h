// Mistakes of the host that a real device would answer with wrong results, or not at all. They are
// counted for the whole process, so that a test can ask at its end.
#pragma once

#include <cstddef>
#include <string>

#include "core/abi/msrt.h"

namespace accelerator {

void CountMisuse(const std::string& what);

}  // namespace accelerator

// How many there were since the library was loaded; the text of the last goes to `last`, cut to
// `bytes`.
extern "C" MSRT_API size_t msrt_accelerator_misuses(char* last, size_t bytes);
