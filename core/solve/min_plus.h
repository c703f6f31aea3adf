// The inner loop of every elimination: the minimum over rows of a sum of tables.
#pragma once

#include <cstddef>
#include <span>

namespace msrt {

// A table's rows, `stride` cells apart.
struct RowSource {
  const double* cells;
  size_t stride;
};

// out[y] = min over rows i of row_costs[i] + sum over sources of cells[i * stride + y], for y <
// width. Infinite costs are allowed, minus infinity is not. Requires at least one row and one
// source.
void MinOverRows(std::span<const double> row_costs, std::span<const RowSource> sources,
                 size_t width, double* out);

// The row with the least value of row_costs[i] + sum of cells[i * stride]; the lowest in case of a
// tie.
size_t BestRow(std::span<const double> row_costs, std::span<const RowSource> sources);

// out (columns x rows) = in (rows x columns), transposed.
void Transpose(const double* in, size_t rows, size_t columns, double* out);

}  // namespace msrt
