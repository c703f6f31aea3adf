// The measurement that all programs of comm_bench share: the time of an all-reduce of floats.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace msrt::bench {

struct CommSize {
  const char* name;
  size_t bytes;
  int calls;    // in a batch
  int batches;  // the median batch counts
};
inline constexpr CommSize kCommSizes[] = {
    {"1 KiB", 1024, 500, 21},
    {"32 KiB", 32 * 1024, 100, 21},
    {"1 MiB", size_t{1} << 20, 20, 15},
    {"64 MiB", size_t{64} << 20, 1, 7},
};

// Calls all_reduce(data, count) on every rank and prints one line per size on rank 0: the
// microseconds of a call. `effort` below 100 % makes fewer calls.
template <typename F>
void MeasureAllReduce(const char* name, bool prints, int percent, F&& all_reduce) {
  for (const CommSize& size : kCommSizes) {
    std::vector<float> data(size.bytes / sizeof(float), 0.0f);
    const int calls = std::max(1, size.calls * percent / 100);
    const int batches = std::max(3, size.batches * percent / 100);
    for (int i = 0; i < std::max(2, calls / 4); ++i) all_reduce(data.data(), data.size());
    std::vector<double> micros;
    for (int batch = 0; batch < batches; ++batch) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < calls; ++i) all_reduce(data.data(), data.size());
      const std::chrono::duration<double, std::micro> time =
          std::chrono::steady_clock::now() - begin;
      micros.push_back(time.count() / calls);
    }
    std::nth_element(micros.begin(), micros.begin() + batches / 2, micros.end());
    if (!prints) continue;
    std::printf("%s;%s;%.2f\n", name, size.name, micros[static_cast<size_t>(batches / 2)]);
    std::fflush(stdout);
  }
}

}  // namespace msrt::bench
