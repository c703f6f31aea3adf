// fuzz_seeds DIRECTORY: writes the seeds of the target that it is linked with as files, for
// libFuzzer's corpus.
#include <cstdio>

#include "core/base/io.h"
#include "tests/fuzz/driver.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_seeds DIRECTORY\n");
    return 2;
  }
  int number = 0;
  for (const auto& seed : msrt::testing::kFuzzSubject.seeds()) {
    const std::span<const std::byte> piece = seed;
    const msrt::Status status = msrt::DefaultIo()->WriteFile(
        msrt::StrCat(argv[1], "/seed_", number++), std::span(&piece, 1));
    if (status.ok()) continue;
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  return 0;
}
