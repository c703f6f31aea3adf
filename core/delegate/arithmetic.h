// The names of arithmetics as delegates and kernels give them; see msrt_candidate.
#pragma once

#include "core/base/status.h"

namespace msrt {

// Checks a name that comes through the C interface; null, which promises nothing, is valid. The
// message begins with "arithmetic".
Status CheckArithmetic(const char* name);

}  // namespace msrt
