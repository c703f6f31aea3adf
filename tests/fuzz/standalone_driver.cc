// A fuzz target as a standalone program, for every compiler and every sanitizer:
//   fuzz_x                       the seeds, and some thousand seeded mutations
//   fuzz_x RUNS [SEED [FILE]]    that many mutations
//   fuzz_x FILE...               these files
// FILE always has the bytes under test, so that they remain after a crash.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "core/base/clock.h"
#include "tests/fuzz/driver.h"

namespace msrt::testing {
namespace {

constexpr double kSlowMillis = 20'000;  // a finding, even under a sanitizer
constexpr size_t kMaxPoolFiles = 400, kMaxFileBytes = 32 * 1024;

bool Try(const FuzzFile& file, const char* keep) {
  if (keep != nullptr) {
    std::ofstream out(keep, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(file.data()),
              static_cast<std::streamsize>(file.size()));
  }
  const StopWatch watch;
  const bool taken = kFuzzSubject.run(file);
  if (watch.Millis() < kSlowMillis) return taken;
  std::fprintf(stderr, "finding: took %.0f ms\n", watch.Millis());
  std::abort();
}

int TryMutations(int64_t runs, uint64_t seed, const char* keep) {
  std::vector<FuzzFile> pool = kFuzzSubject.seeds();
  const size_t seeds = pool.size();
  int64_t taken = 0;
  const StopWatch watch;
  for (const FuzzFile& file : pool) taken += Try(file, keep);
  std::mt19937_64 random(seed);
  for (int64_t run = 0; run < runs; ++run) {
    FuzzFile file = kFuzzSubject.mutate(pool[random() % pool.size()], random());
    if (!Try(file, keep)) continue;
    ++taken;
    // Accepted files become seeds.
    if (file.size() > kMaxFileBytes) continue;
    if (pool.size() < kMaxPoolFiles) pool.push_back(std::move(file));
    else pool[seeds + random() % (kMaxPoolFiles - seeds)] = std::move(file);
  }
  const double seconds = watch.Millis() / 1000;
  std::printf("%lld executions in %.1f s, %.0f a second; %lld taken, %zu kept\n",
              static_cast<long long>(runs), seconds, static_cast<double>(runs) / seconds,
              static_cast<long long>(taken), pool.size());
  return taken > 0 ? 0 : 1;
}

int TryFiles(int count, char** paths) {
  for (int i = 0; i < count; ++i) {
    std::ifstream in(paths[i], std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    const auto* begin = reinterpret_cast<const std::byte*>(text.data());
    std::printf("%s: %s\n", paths[i],
                Try(FuzzFile(begin, begin + text.size()), nullptr) ? "taken" : "refused");
  }
  return 0;
}

}  // namespace
}  // namespace msrt::testing

int main(int argc, char** argv) {
  if (argc < 2) return msrt::testing::TryMutations(5000, 1, nullptr);
  char* end = nullptr;
  const long long runs = std::strtoll(argv[1], &end, 10);
  if (*end != '\0') return msrt::testing::TryFiles(argc - 1, argv + 1);
  return msrt::testing::TryMutations(runs, argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1,
                                     argc > 3 ? argv[3] : nullptr);
}
