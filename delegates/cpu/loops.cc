#include "delegates/cpu/loops.h"

#include <cstdlib>
#include <string_view>

namespace msrt::cpu {

namespace baseline {
void FillTable(Loops* loops);
}
#if defined(__x86_64__)
namespace avx2 {
void FillTable(Loops* loops);
}
namespace avx512 {
void FillTable(Loops* loops);
}
#endif

namespace {

#if defined(__x86_64__)
// Width in bits of the vectors that ONEDNN_MAX_CPU_ISA allows. oneDNN's variable caps these loops
// too, so that one setting shows what a lesser processor would run.
int MaxVectorBits() {
  const char* value = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (value == nullptr) return 512;
  const std::string_view isa(value);
  if (isa == "SSE41" || isa == "AVX") return 128;
  return isa.starts_with("AVX2") ? 256 : 512;
}
#endif

struct Tables {
  Loops table[3];
  const Loops* best_first[3];
  size_t count = 0;

  Tables() {
#if defined(__x86_64__)
    const int max_bits = MaxVectorBits();
    const bool avx2 = max_bits >= 256 && __builtin_cpu_supports("avx2") &&
                      __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    const bool avx512 = avx2 && max_bits >= 512 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl");
    if (avx512) Add(avx512::FillTable);
    if (avx2) Add(avx2::FillTable);
#endif
    Add(baseline::FillTable);
  }
  void Add(void (*fill)(Loops*)) {
    fill(&table[count]);
    best_first[count] = &table[count];
    ++count;
  }
};

const Tables& All() {
  static const Tables tables;
  return tables;
}

}  // namespace

const Loops& LoopsHere() { return *All().best_first[0]; }

const Loops* const* AllLoops(size_t* count) {
  *count = All().count;
  return All().best_first;
}

}  // namespace msrt::cpu
