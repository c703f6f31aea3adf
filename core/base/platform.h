// What this build computes with: the kind of threads, the processor's vector instructions, the
// machine's memory.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace msrt {

// The threads of MakeDefaultParallel: "OpenMP" or "own".
std::string_view DefaultThreadsName();

// The vector instructions of this processor and its system, of those that kernels use: "avx2",
// "fma", "avx512f", ...
std::vector<std::string_view> InstructionSets();

// The machine's memory in bytes, whether free or in use; UINT64_MAX where the system does not tell.
uint64_t PhysicalMemoryBytes();

}  // namespace msrt
