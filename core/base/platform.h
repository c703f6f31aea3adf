// The platform that this build runs on: the kind of threads, the processor's vector instructions,
// the machine's memory.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace msrt {

// The threads of MakeDefaultParallel: "OpenMP" or "own".
std::string_view DefaultThreadsName();

// The vector instructions that kernels use and that this processor and system support: "avx2",
// "fma", "avx512f", ...
std::vector<std::string_view> InstructionSets();

// The machine's memory in bytes, free or in use; UINT64_MAX if the system does not report it.
uint64_t PhysicalMemoryBytes();

}  // namespace msrt
