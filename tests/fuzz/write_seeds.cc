// fuzz_seeds DIRECTORY: writes the seeds as files, for libFuzzer's corpus.
#include <cstdio>

#include "core/base/io.h"
#include "tests/fuzz/seeds.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_seeds DIRECTORY\n");
    return 2;
  }
  int number = 0;
  for (const auto& seed : msrt::testing::FuzzSeeds()) {
    const std::span<const std::byte> piece = seed;
    const msrt::Status status = msrt::DefaultIo()->WriteFile(msrt::StrCat(argv[1], "/seed_", number++, ".msrt"), std::span(&piece, 1));
    if (status.ok()) continue;
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  return 0;
}
