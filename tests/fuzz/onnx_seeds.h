// The ONNX files that fuzzing starts from: the committed models of single nodes, and small ones
// with control flow and functions; and mutations of such files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace msrt::testing {

std::vector<std::vector<std::byte>> OnnxSeeds();
std::vector<std::byte> MutateOnnx(std::span<const std::byte> file, uint64_t seed);

}  // namespace msrt::testing
