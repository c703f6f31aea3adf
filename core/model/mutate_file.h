// Mutates files for fuzzers: changes fields of a file's tables, whole tables or weights, and then
// makes header and hash match, so that the damage reaches the code behind those checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace msrt {

// Returns `file` with one to four edits, the same for the same seed. Accepts any bytes; if they are
// not a .msrt file, single bytes are changed.
std::vector<std::byte> MutateFile(std::span<const std::byte> file, uint64_t seed);

// Sets sizes and hash in the header to match the file's bytes, if there is a header.
void FitHeader(std::vector<std::byte>* file);

}  // namespace msrt
