// The ONNX files that fuzzing begins with: the committed models of single nodes, and small ones
// with control flow and functions; and files that are some edits away from one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace msrt::testing {

std::vector<std::vector<std::byte>> OnnxSeeds();
std::vector<std::byte> MutateOnnx(std::span<const std::byte> file, uint64_t seed);

}  // namespace msrt::testing
