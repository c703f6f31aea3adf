// Damage with a purpose, for fuzzers: other values in the fields of a file's tables, other tables,
// other weights, and then a header and a hash that fit, so that the damage reaches the code behind
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace msrt {

// A file one to four edits away from `file`, the same for the same seed. Any bytes will do; of what
// is no .msrt file, bytes are changed.
std::vector<std::byte> MutateFile(std::span<const std::byte> file, uint64_t seed);

// Makes sizes and hash of the header right for the file's bytes, as far as there is a header.
void FitHeader(std::vector<std::byte>* file);

}  // namespace msrt
