// Overlapping tiles: which part of its targets each tile of a phase computes.
#pragma once

#include <vector>

#include "core/image/executors/stream_rows.h"

namespace msrt {

// The tiles of a phase in order; those of a stored value are cut along its rows only.
class TileSchedule {
 public:
  TileSchedule(const PieceRunner& runner, const StreamPhase& phase, int64_t rows, int64_t columns);
  int64_t tile_count() const { return down_ * across_; }
  int64_t down() const { return down_; }      // rows of tiles
  int64_t across() const { return across_; }  // tiles in each of them
  std::vector<ValueBox> targets(int64_t tile) const;
  // The same as one row of tiles together, and as one column.
  std::vector<ValueBox> row_targets(int64_t row) const;
  std::vector<ValueBox> column_targets(int64_t column) const;

 private:
  std::vector<ValueBox> CutColumns(std::vector<ValueBox> boxes, int64_t column) const;

  const PieceRunner& runner_;
  const StreamPhase& phase_;
  int64_t rows_, columns_, all_columns_ = 1, down_, across_;
};

}  // namespace msrt
