// A convolutional network in miniature for the fault loops: every kind of step is in it (packed
// weights, an epilogue to fuse, a window, a reduction, a product, a view, state), and nothing is
// large.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace msrt::testing {

Module SmallCnn();
// Written to the directory for temporary files; the path.
const std::string& SmallCnnFile();
std::vector<float> SmallCnnInput();
inline constexpr int64_t kSmallCnnDims[] = {1, 2, 8, 8};

// The same up to what two orders of a sum make of it.
bool Close(std::span<const float> a, std::span<const float> b);

}  // namespace msrt::testing
