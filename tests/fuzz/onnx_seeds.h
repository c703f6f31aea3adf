// The ONNX files that fuzzing begins with: the committed models of single nodes, and small ones with control flow and functions.
#pragma once

#include <cstddef>
#include <vector>

namespace msrt::testing {

std::vector<std::vector<std::byte>> OnnxSeeds();

}  // namespace msrt::testing
