// Inverse by elimination with partial pivoting in double precision. A singular matrix has an
// inverse of numbers that are not finite.
#include <algorithm>
#include <cmath>
#include <vector>

#include "delegates/reference/dispatch.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/number.h"

namespace msrt::reference {
namespace {

// Turns `m` into the identity and `inverse`, which is the identity, into the inverse.
void Invert(std::vector<double>& m, std::vector<double>& inverse, int64_t rows) {
  const auto row_of = [&](std::vector<double>& a, int64_t row) { return a.data() + row * rows; };
  for (int64_t k = 0; k < rows; ++k) {
    int64_t pivot = k;
    for (int64_t row = k + 1; row < rows; ++row) {
      if (std::abs(row_of(m, row)[k]) > std::abs(row_of(m, pivot)[k])) pivot = row;
    }
    for (auto* a : {&m, &inverse}) {
      if (pivot != k) std::swap_ranges(row_of(*a, k), row_of(*a, k) + rows, row_of(*a, pivot));
    }
    const double divisor = row_of(m, k)[k];
    for (auto* a : {&m, &inverse}) {
      for (int64_t column = 0; column < rows; ++column) row_of(*a, k)[column] /= divisor;
    }
    for (int64_t row = 0; row < rows; ++row) {
      const double factor = row_of(m, row)[k];
      if (row == k) continue;
      for (auto* a : {&m, &inverse}) {
        for (int64_t column = 0; column < rows; ++column)
          row_of(*a, row)[column] -= factor * row_of(*a, k)[column];
      }
    }
  }
}

Status Inverse(const KernelArgs& args) {
  const TensorView& x = args.inputs[0];
  const int64_t rows = x.dims.back(), matrix = rows * rows;
  if (x.elements() == 0) return OkStatus();
  return DispatchFloat(x.dtype, [&]<typename T>() -> Status {
    const int64_t count = x.elements() / matrix;
    return ParallelRanges(args.parallel, count, 4, [&](int64_t begin, int64_t end) {
      std::vector<double> m(static_cast<size_t>(matrix)), inverse(m.size());
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t j = 0; j < matrix; ++j) {
          m[static_cast<size_t>(j)] = static_cast<double>(x.As<T>()[i * matrix + j]);
          inverse[static_cast<size_t>(j)] = j % (rows + 1) == 0 ? 1 : 0;
        }
        Invert(m, inverse, rows);
        for (int64_t j = 0; j < matrix; ++j)
          args.outputs[0].As<T>()[i * matrix + j] = FromWide<T>(inverse[static_cast<size_t>(j)]);
      }
    });
  });
}

constexpr KernelDef kDeterminantGradKernels[] = {{"msrt", "Inverse", Inverse}};

}  // namespace

std::span<const KernelDef> DeterminantGradKernels() { return kDeterminantGradKernels; }

}  // namespace msrt::reference
