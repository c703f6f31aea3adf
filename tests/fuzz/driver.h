// The interface between a fuzz target and its driver: libFuzzer (libfuzzer_driver.cc) or our own
// program (standalone_driver.cc).
#pragma once

#include <cstdint>
#include <vector>

#include "tests/fuzz/targets.h"

namespace msrt::testing {

using FuzzFile = std::vector<std::byte>;

struct FuzzSubject {
  FuzzTarget run;
  std::vector<FuzzFile> (*seeds)();
  // Makes edits that respect the format; the seed determines them.
  FuzzFile (*mutate)(std::span<const std::byte> file, uint64_t seed);
  // Corrects what every edit of bytes breaks (hashes); may be null.
  void (*repair)(FuzzFile* file);
};

extern const FuzzSubject kFuzzSubject;

}  // namespace msrt::testing
