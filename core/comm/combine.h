// Elementwise reduction of two arrays, in plain loops that compilers turn into vector instructions.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/comm/communicator.h"

namespace msrt {

size_t CommTypeBytes(CommType type);
std::string_view CommTypeName(CommType type);
std::string_view CommReduceName(CommReduce reduce);

// out[i] = a[i] op b[i]. Integers wrap. The result of f16 and bf16 is rounded once per element. The
// minimum and maximum with a NaN are NaN. `out` may be `a` or `b`; otherwise the arrays do not
// overlap. Any alignment.
void Combine(void* out, const void* a, const void* b, size_t count, CommType type,
             CommReduce reduce);

}  // namespace msrt
