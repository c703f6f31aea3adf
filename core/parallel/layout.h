// Which box of a tensor each rank owns: a grid over some of its dims. Parts may have any sizes, and
// may be empty. Ranks are numbered in row-major order of the grid. (The order of elements in memory
// is `Layout`, in core/graph/tensor.h.)
#pragma once

#include <span>
#include <vector>

#include "core/base/dims.h"
#include "core/region/box.h"

namespace msrt {

// The cuts along one axis of the grid: part p of the dim is [at[p], at[p + 1]). The first is 0, the
// last the extent. A dim of -1: the axis does not cut this tensor, ranks along it own the same.
struct DimCuts {
  int dim = -1;
  std::vector<int64_t> at;
};

class RankLayout {
 public:
  // Every rank has the whole tensor.
  static RankLayout Whole(const Dims& dims, int ranks);
  // kInvalidArgument if a dim does not exist or is cut twice, or if cuts do not ascend from 0 to
  // the extent.
  static Result<RankLayout> Grid(const Dims& dims, std::span<const DimCuts> cuts);

  int ranks() const { return static_cast<int>(boxes_.size()); }
  const Dims& dims() const { return dims_; }
  const std::vector<Box>& boxes() const { return boxes_; }  // by rank
  const Box& owned(int rank) const { return boxes_[static_cast<size_t>(rank)]; }

 private:
  RankLayout(const Dims& dims, std::vector<Box> boxes) : dims_(dims), boxes_(std::move(boxes)) {}
  Dims dims_;
  std::vector<Box> boxes_;
};

// Returns the cuts of a dim into parts with these shares of it, which need not add up to 1; a share
// may be 0. Cuts are multiples of `granule`, except the last one. Requires a positive sum.
std::vector<int64_t> CutsByShares(int64_t extent, std::span<const double> shares,
                                  int64_t granule = 1);

}  // namespace msrt
