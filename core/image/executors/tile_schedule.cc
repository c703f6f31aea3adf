#include "core/image/executors/tile_schedule.h"

#include <algorithm>

namespace msrt {

TileSchedule::TileSchedule(const PieceRunner& runner, const StreamPhase& phase, int64_t rows,
                           int64_t columns)
    : runner_(runner), phase_(phase), rows_(rows), columns_(columns) {
  down_ = StripCount(runner, phase, rows);
  for (const StreamTarget& t : phase.targets) {
    const Dims& dims = runner.type(t.value).dims;
    if (t.dim >= 0 && t.dim + 2 == dims.rank()) all_columns_ = std::max(all_columns_, dims.back());
  }
  across_ = (all_columns_ + columns - 1) / columns;
}

std::vector<ValueBox> TileSchedule::targets(int64_t tile) const {
  return CutColumns(TargetsOf(runner_, phase_, rows_, tile / across_), tile % across_);
}

std::vector<ValueBox> TileSchedule::row_targets(int64_t row) const {
  return TargetsOf(runner_, phase_, rows_, row);
}

std::vector<ValueBox> TileSchedule::column_targets(int64_t column) const {
  std::vector<ValueBox> boxes;
  for (const StreamTarget& t : phase_.targets)
    boxes.push_back({t.value, Box::Whole(runner_.type(t.value).dims)});
  return CutColumns(std::move(boxes), column);
}

std::vector<ValueBox> TileSchedule::CutColumns(std::vector<ValueBox> boxes, int64_t column) const {
  for (ValueBox& b : boxes) {
    const int dim = b.box.rank() - 1;
    const bool cut = std::any_of(phase_.targets.begin(), phase_.targets.end(), [&](const auto& t) {
      return t.value == b.value && t.dim >= 0 && t.dim + 1 == dim;
    });
    const auto at = [&](int64_t c) {
      return std::min(all_columns_, c * columns_) * b.box[dim].end / all_columns_;
    };
    if (cut) b.box[dim] = {at(column), at(column + 1)};
    else if (column != 0) b.box[0] = {0, 0};
  }
  std::erase_if(boxes, [](const ValueBox& b) { return b.box.empty(); });
  return boxes;
}

}  // namespace msrt
