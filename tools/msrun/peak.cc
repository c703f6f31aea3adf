#include "tools/msrun/peak.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "core/base/clock.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace msrt {
namespace {

// Keeps the compiler from dropping a computation whose result nobody reads.
std::atomic<float> sink;

#if defined(__x86_64__)
// Twelve independent chains hide the latency of the two FMA units. Returns the operations done.
__attribute__((target("avx2,fma"))) double FmaLoop(int64_t rounds) {
  __m256 a[12];
  for (int i = 0; i < 12; ++i) a[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(0.001f);
  for (int64_t r = 0; r < rounds; ++r) {
    for (auto& v : a) v = _mm256_fmadd_ps(v, x, y);
  }
  __m256 sum = a[0];
  for (int i = 1; i < 12; ++i) sum = _mm256_add_ps(sum, a[i]);
  sink = _mm256_cvtss_f32(sum);
  return static_cast<double>(rounds) * 12 * 8 * 2;
}
#endif

double ScalarLoop(int64_t rounds) {
  float a[64];
  for (int i = 0; i < 64; ++i) a[i] = static_cast<float>(i);
  for (int64_t r = 0; r < rounds; ++r) {
    for (float& v : a) v = v * 0.999f + 0.001f;
  }
  float sum = 0;
  for (float v : a) sum += v;
  sink = sum;
  return static_cast<double>(rounds) * 64 * 2;
}

double ComputeLoop(int64_t rounds) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return FmaLoop(rounds);
#endif
  return ScalarLoop(rounds);
}

}  // namespace

MachinePeak MeasurePeak(ParallelFor& parallel) {
  MachinePeak peak;
  const int threads = parallel.threads();
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::atomic<double> operations{0};
    const StopWatch watch;
    (void)parallel.Run(threads, [&](int64_t) { operations.fetch_add(ComputeLoop(500000)); });
    peak.gflops = std::max(peak.gflops, operations.load() / (watch.Millis() * 1e6));
  }
  std::vector<float> memory(size_t{32} << 20, 1.0f);  // 128 MB: beyond the caches
  for (int repeat = 0; repeat < 3; ++repeat) {
    const StopWatch watch;
    (void)ParallelRanges(parallel, static_cast<int64_t>(memory.size()), 1 << 20, [&](int64_t begin, int64_t end) {
      float sum[16] = {};
      for (int64_t i = begin; i + 16 <= end; i += 16) {
        for (int k = 0; k < 16; ++k) sum[k] += memory[static_cast<size_t>(i + k)];
      }
      sink = sum[0] + sum[15];
    });
    peak.gbytes_per_second = std::max(peak.gbytes_per_second, static_cast<double>(memory.size()) * 4 / (watch.Millis() * 1e6));
  }
  return peak;
}

}  // namespace msrt
