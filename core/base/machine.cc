#include "core/base/machine.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <vector>

#include "core/base/clock.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace msrt {
namespace {

// Keeps the compiler from dropping a computation whose result is not used.
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

// The same with vectors of twice the width, which some processors execute at the same rate and
// others at half of it.
__attribute__((target("avx512f"))) double WideFmaLoop(int64_t rounds) {
  __m512 a[12];
  for (int i = 0; i < 12; ++i) a[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(0.001f);
  for (int64_t r = 0; r < rounds; ++r) {
    for (auto& v : a) v = _mm512_fmadd_ps(v, x, y);
  }
  __m512 sum = a[0];
  for (int i = 1; i < 12; ++i) sum = _mm512_add_ps(sum, a[i]);
  sink = _mm512_cvtss_f32(sum);
  return static_cast<double>(rounds) * 12 * 16 * 2;
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

bool HasFma() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

double ComputeLoop(int64_t rounds) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return WideFmaLoop(rounds);
  if (HasFma()) return FmaLoop(rounds);
#endif
  return ScalarLoop(rounds);
}

// Measures several bursts and keeps the best: other load can only make the machine look slower.
// Where it makes bursts long, there are a few in any case.
template <typename Burst>
Status BestOf(double seconds, double* best_per_second, Burst&& burst) {
  constexpr int kMinBursts = 4;
  const StopWatch all;
  for (int bursts = 0; bursts < kMinBursts || all.Millis() * 1e-3 < seconds; ++bursts) {
    const StopWatch one;
    double work = 0;
    MSRT_RETURN_IF_ERROR(burst(&work));
    *best_per_second = std::max(*best_per_second, work / std::max(one.Millis() * 1e-3, 1e-9));
  }
  return OkStatus();
}

Status MeasureFlops(ParallelFor& parallel, double seconds, double* flops_per_second) {
  constexpr int64_t kRounds = 50000;  // about a tenth of a millisecond
  return BestOf(seconds, flops_per_second, [&](double* work) {
    std::atomic<double> operations{0};
    Status status = parallel.Run(parallel.threads(),
                                 [&](int64_t) { operations.fetch_add(ComputeLoop(kRounds)); });
    *work = operations;
    return status;
  });
}

Status MeasureBytes(ParallelFor& parallel, double seconds, double* bytes_per_second) {
  std::vector<float> memory(size_t{16} << 20, 1.0f);
  return BestOf(seconds, bytes_per_second, [&](double* work) {
    *work = 2.0 * static_cast<double>(memory.size()) * sizeof(float);
    return ParallelRanges(
        parallel, static_cast<int64_t>(memory.size()), 1 << 20, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            memory[static_cast<size_t>(i)] = memory[static_cast<size_t>(i)] * 0.5f + 1.0f;
        });
  });
}

}  // namespace

Machine TypicalMachine(int threads) {
  // For each core at about 3 GHz. Memory is shared, so its bandwidth has a maximum.
  constexpr double kFlopsWithFma = 90e9, kFlopsWithout = 12e9, kBytes = 20e9, kMaxBytes = 200e9;
  const double cores = std::clamp(threads, 1, AvailableCores());
  return {cores * (HasFma() ? kFlopsWithFma : kFlopsWithout), std::min(cores * kBytes, kMaxBytes)};
}

Result<Machine> MeasureMachine(ParallelFor& parallel, double seconds) {
  // The team stays awake between the bursts.
  return RunOnTeam(parallel, [&]() -> Result<Machine> {
    Machine machine;
    MSRT_RETURN_IF_ERROR(MeasureFlops(parallel, seconds * 0.3, &machine.flops_per_second));
    MSRT_RETURN_IF_ERROR(MeasureBytes(parallel, seconds * 0.4, &machine.bytes_per_second));
    return machine;
  });
}

std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace msrt
