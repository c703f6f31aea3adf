// Damage with a purpose for ONNX files: the message is parsed, and fields anywhere in its tree get other values, go, come twice or are
// exchanged for others of their kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace msrt::testing {

// A file one to four edits away, the same for the same seed. Of what is no ONNX model, bytes are changed.
std::vector<std::byte> MutateOnnx(std::span<const std::byte> file, uint64_t seed);

}  // namespace msrt::testing
