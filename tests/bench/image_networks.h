// Networks for benchmarks on large images, with random weights.
#pragma once

#include <string_view>

#include "core/graph/graph.h"

namespace msrt::testing {

// "classes": 7x7/2 4->64, eight 3x3 64->64 with batch norm and ReLU (two of them dilated), bilinear
// x2, 1x1 to 5 classes. "unet": four levels over 4 bands, 32 to 512 channels.
Result<Module> ImageNetwork(std::string_view name);
constexpr int64_t kImageBands = 4;

}  // namespace msrt::testing
