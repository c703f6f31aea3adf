// Det by elimination with partial pivoting in double precision.
#include <algorithm>
#include <cmath>
#include <vector>

#include "delegates/reference/dispatch.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/number.h"

namespace msrt::reference {
namespace {

// Destroys the matrix. An empty matrix has determinant 1.
double Determinant(std::vector<double>& m, int64_t rows) {
  const auto at = [&](int64_t row, int64_t column) -> double& {
    return m[static_cast<size_t>(row * rows + column)];
  };
  double determinant = 1;
  for (int64_t k = 0; k < rows; ++k) {
    int64_t pivot = k;
    for (int64_t row = k + 1; row < rows; ++row) {
      if (std::abs(at(row, k)) > std::abs(at(pivot, k))) pivot = row;
    }
    if (pivot != k) {
      for (int64_t column = k; column < rows; ++column) std::swap(at(k, column), at(pivot, column));
      determinant = -determinant;
    }
    determinant *= at(k, k);
    if (at(k, k) == 0) return determinant;
    for (int64_t row = k + 1; row < rows; ++row) {
      const double factor = at(row, k) / at(k, k);
      for (int64_t column = k + 1; column < rows; ++column)
        at(row, column) -= factor * at(k, column);
    }
  }
  return determinant;
}

Status Det(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &out = args.outputs[0];
  const int64_t rows = x.dims.back();
  return DispatchFloat(x.dtype, [&]<typename T>() -> Status {
    return ParallelRanges(args.parallel, out.elements(), 4, [&](int64_t begin, int64_t end) {
      std::vector<double> matrix(static_cast<size_t>(rows * rows));
      for (int64_t i = begin; i < end; ++i) {
        const T* from = x.As<T>() + i * rows * rows;
        std::transform(from, from + rows * rows, matrix.begin(),
                       [](T v) { return static_cast<double>(v); });
        out.As<T>()[i] = FromWide<T>(Determinant(matrix, rows));
      }
    });
  });
}

constexpr KernelDef kDeterminantKernels[] = {{"", "Det", Det}};

}  // namespace

std::span<const KernelDef> DeterminantKernels() { return kDeterminantKernels; }

}  // namespace msrt::reference
