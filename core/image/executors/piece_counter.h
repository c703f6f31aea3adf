// Counts what the pieces of a phase compute, to show what is computed twice.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/image/executors/image_runner.h"

namespace msrt {

class PieceCounter {
 public:
  explicit PieceCounter(const PieceRunner& runner)
      : runner_(runner), values_(runner.graph().value_count()) {}

  // Adds what a piece computes.
  void Add(const RequiredBoxes& required);

  double computed() const;  // elements
  double whole() const;     // elements of the hulls of the computed parts
  // Requires that each piece computed whole rows. `dim_of` returns the dim of a value's rows, or
  // -1.
  std::vector<RowCount> Rows(const std::function<int(ValueId)>& dim_of) const;

 private:
  struct Computed {
    std::optional<Box> hull;
    double elements = 0;
  };
  const PieceRunner& runner_;
  std::vector<Computed> values_;
};

}  // namespace msrt
