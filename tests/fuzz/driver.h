// What a fuzz target gives to whoever drives it: libFuzzer (libfuzzer_driver.cc) or a program of
// our own (standalone_driver.cc).
#pragma once

#include <cstdint>
#include <vector>

#include "tests/fuzz/targets.h"

namespace msrt::testing {

using FuzzFile = std::vector<std::byte>;

struct FuzzSubject {
  FuzzTarget run;
  std::vector<FuzzFile> (*seeds)();
  FuzzFile (*mutate)(std::span<const std::byte> file,
                     uint64_t seed);  // edits that know the format, the same for the same seed
  void (*repair)(FuzzFile* file);     // what edits of bytes break for certain (hashes); may be null
};

extern const FuzzSubject kFuzzSubject;

}  // namespace msrt::testing
