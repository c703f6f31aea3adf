// Carries the cuts of a graph's inputs forward to all values: the dims that follow a cut dim
// through the iteration spaces of nodes are cut in the same proportions.
#pragma once

#include "core/parallel/layout.h"
#include "core/parallel/split_plan.h"

namespace msrt {

class ValueCuts {
 public:
  // kInvalidArgument if the options do not describe a grid.
  static Result<ValueCuts> Make(const GraphSpaces& spaces, const SplitOptions& options);

  int ranks() const { return ranks_; }
  bool is_cut(ValueId value) const;
  // Returns what each rank owns of the value; all of it if it is not cut. Requires a tensor.
  Result<RankLayout> LayoutOf(ValueId value) const;

 private:
  ValueCuts(const GraphSpaces& spaces, const SplitOptions& options);
  void Follow(size_t node, size_t axis);

  const GraphSpaces& spaces_;
  const SplitOptions& options_;
  int ranks_ = 1;
  std::vector<std::vector<int>> dims_;  // by value, by axis of the grid: the dim; -1: none
  std::vector<Dims> granules_;          // by value, by dim; empty: none
};

}  // namespace msrt
