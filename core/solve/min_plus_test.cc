#include "core/solve/min_plus.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

namespace msrt {
namespace {

// Integers, so that the order of additions does not matter; some are infinite.
std::vector<double> RandomCells(std::mt19937_64& random, size_t count) {
  std::vector<double> cells(count);
  for (double& cell : cells)
    cell = random() % 9 == 0 ? std::numeric_limits<double>::infinity()
                             : static_cast<double>(random() % 1000);
  return cells;
}

TEST(MinOverRows, EqualsPlainLoop) {
  std::mt19937_64 random(1);
  for (size_t width : {1, 2, 3, 4, 5, 7, 8, 15, 16, 35, 127, 128, 129, 300}) {
    for (size_t rows : {1, 2, 3, 4, 5, 8, 9}) {
      for (size_t source_count : {1, 2, 3, 5}) {
        const std::vector<double> row_costs = RandomCells(random, rows);
        std::vector<std::vector<double>> tables;
        std::vector<RowSource> sources;
        for (size_t s = 0; s < source_count; ++s) {
          tables.push_back(RandomCells(random, rows * (width + s)));
          sources.push_back({tables.back().data(), width + s});
        }
        std::vector<double> out(width + 1, -7);
        MinOverRows(row_costs, sources, width, out.data());
        EXPECT_EQ(out[width], -7) << "written beyond the end";
        for (size_t y = 0; y < width; ++y) {
          double least = std::numeric_limits<double>::infinity();
          for (size_t i = 0; i < rows; ++i) {
            double sum = row_costs[i];
            for (size_t s = 0; s < source_count; ++s) sum += tables[s][i * (width + s) + y];
            least = std::min(least, sum);
          }
          ASSERT_EQ(out[y], least) << "width " << width << ", rows " << rows << ", sources "
                                   << source_count << ", column " << y;
        }
      }
    }
  }
}

TEST(BestRow, PrefersLowestIndexOnTie) {
  const std::vector<double> row_costs = {3, 1, 2, 1}, cells = {0, 1, 0, 1};
  const RowSource source{cells.data(), 1};
  EXPECT_EQ(BestRow(row_costs, {}), 1u);
  EXPECT_EQ(BestRow(row_costs, {&source, 1}), 1u);
}

}  // namespace
}  // namespace msrt
