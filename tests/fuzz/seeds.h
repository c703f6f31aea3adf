// The files that fuzzing starts from, generated in the process: one of each kind, all small.
#pragma once

#include <cstddef>
#include <vector>

namespace msrt::testing {

std::vector<std::vector<std::byte>> FuzzSeeds();

}  // namespace msrt::testing
