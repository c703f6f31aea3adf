// Converts arrays of Half and BFloat16 to and from float, with vector instructions where the
// machine has them. Results equal those of half.h bit by bit; a NaN may get another payload.
#pragma once

#include <cstddef>

#include "core/base/half.h"

namespace msrt {

// The arrays have `count` elements and do not overlap.
void ConvertArray(const Half* from, float* to, size_t count);
void ConvertArray(const float* from, Half* to, size_t count);
void ConvertArray(const BFloat16* from, float* to, size_t count);
void ConvertArray(const float* from, BFloat16* to, size_t count);

}  // namespace msrt
