// An arena for tables that live as long as the stage that makes them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

namespace msrt {

class CellArena {
 public:
  // The cells are not initialised.
  double* Allocate(size_t cells) {
    if (cells > left_) {
      left_ = std::max(cells, kBlockCells);
      blocks_.push_back(std::make_unique_for_overwrite<double[]>(left_));
      next_ = blocks_.back().get();
    }
    double* result = next_;
    next_ += cells;
    left_ -= cells;
    return result;
  }

 private:
  static constexpr size_t kBlockCells = size_t{1} << 15;
  std::vector<std::unique_ptr<double[]>> blocks_;
  double* next_ = nullptr;
  size_t left_ = 0;
};

}  // namespace msrt
