#include "core/solve/min_plus.h"

#include <limits>

// The resolver that picks a clone runs before a sanitizer is ready; and only glibc on x86 is known to have what it takes.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define MSRT_CLONE_FOR_AVX2 __attribute__((target_clones("avx2", "default")))
#else
#define MSRT_CLONE_FOR_AVX2
#endif

namespace msrt {
namespace {

// kWidth columns at a time stay in registers while the rows go by.
template <size_t kWidth>
[[gnu::always_inline]] inline void MinOfColumns(const double* row_costs, size_t rows, const RowSource* sources, size_t source_count,
                                                size_t first, double* out) {
  double least[kWidth];
  for (size_t j = 0; j < kWidth; ++j) least[j] = std::numeric_limits<double>::infinity();
  const RowSource main = sources[0];
  for (size_t i = 0; i < rows; ++i) {
    double sum[kWidth];
    const double* row = main.cells + i * main.stride + first;
    for (size_t j = 0; j < kWidth; ++j) sum[j] = row_costs[i] + row[j];
    for (size_t s = 1; s < source_count; ++s) {
      const double* more = sources[s].cells + i * sources[s].stride + first;
      for (size_t j = 0; j < kWidth; ++j) sum[j] += more[j];
    }
    for (size_t j = 0; j < kWidth; ++j) least[j] = sum[j] < least[j] ? sum[j] : least[j];
  }
  for (size_t j = 0; j < kWidth; ++j) out[first + j] = least[j];
}

MSRT_CLONE_FOR_AVX2 void MinOverRowsImpl(const double* row_costs, size_t rows, const RowSource* sources, size_t source_count, size_t width,
                                         double* out) {
  size_t y = 0;
  for (; y + 16 <= width; y += 16) MinOfColumns<16>(row_costs, rows, sources, source_count, y, out);
  for (; y + 4 <= width; y += 4) MinOfColumns<4>(row_costs, rows, sources, source_count, y, out);
  for (; y < width; ++y) MinOfColumns<1>(row_costs, rows, sources, source_count, y, out);
}

}  // namespace

void MinOverRows(std::span<const double> row_costs, std::span<const RowSource> sources, size_t width, double* out) {
  MinOverRowsImpl(row_costs.data(), row_costs.size(), sources.data(), sources.size(), width, out);
}

size_t BestRow(std::span<const double> row_costs, std::span<const RowSource> sources) {
  size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < row_costs.size(); ++i) {
    double sum = row_costs[i];
    for (const RowSource& source : sources) sum += source.cells[i * source.stride];
    if (sum < least) least = sum, best = i;
  }
  return best;
}

void Transpose(const double* in, size_t rows, size_t columns, double* out) {
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) out[j * rows + i] = in[i * columns + j];
  }
}

}  // namespace msrt
