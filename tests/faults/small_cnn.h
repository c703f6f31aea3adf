// A small convolutional network for the fault tests: it has every kind of step (packed weights, an
// epilogue to fuse, a window, a reduction, a product, a view, state).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace msrt::testing {

Module SmallCnn();
// Writes the model to the directory for temporary files; returns the path.
const std::string& SmallCnnFile();
std::vector<float> SmallCnnInput();
inline constexpr int64_t kSmallCnnDims[] = {1, 2, 8, 8};

// Whether they are equal up to the rounding of differently ordered sums.
bool Close(std::span<const float> a, std::span<const float> b);

}  // namespace msrt::testing
