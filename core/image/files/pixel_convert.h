// Copies of rows of pixels, with a conversion to f32 where it is wanted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/graph/dtype.h"

namespace msrt {

// Copies `count` elements that are `from_stride` elements apart to adjacent elements at `to`.
// `to_type` is `from_type` or f32. Neither pointer needs alignment.
void ConvertPixels(const std::byte* from, DType from_type, int64_t from_stride, std::byte* to,
                   DType to_type, int64_t count);

// Copies `count` adjacent elements of `element_bytes` to positions `to_stride` elements apart.
void ScatterPixels(const std::byte* from, std::byte* to, int64_t to_stride, int64_t element_bytes,
                   int64_t count);

// Stores `value`, rounded and limited to the range of the type, in `count` elements.
void FillPixels(double value, DType type, std::byte* to, int64_t count);

}  // namespace msrt
