// The schedule of rolling rows: which rows of which values each strip of a phase computes, reads
// and retains. A strip computes only rows that no strip before it has computed; the rows of a value
// that later strips read again are retained.
#pragma once

#include <optional>
#include <vector>

#include "core/image/executors/stream_phases.h"

namespace msrt {

struct StreamStrip {
  std::vector<ValueBox> targets;  // of the phase
  // Values of which retained rows are read, beside the known values.
  std::vector<ValueId> reads;
  // Boxes to retain from this strip on, in place of what was retained of these values before.
  std::vector<ValueBox> retains;
  // The part of the image from the first row that this strip or a later one reads to the last row
  // that this strip reads; nullopt: the strip does not read the image.
  std::optional<Box> image;
};

class RowSchedule {
 public:
  // `rows` is the number of rows in a strip of the first target. kUnsupported if the rows of some
  // value do not follow each other from strip to strip.
  static Result<RowSchedule> Make(const PieceRunner& runner, const StreamPhase& phase,
                                  int64_t rows);
  // The same for the strips of `range` only. The first of them computes all rows that it needs.
  static Result<RowSchedule> Make(const PieceRunner& runner, const StreamPhase& phase, int64_t rows,
                                  Interval range);

  size_t strip_count() const { return strips_.size(); }
  StreamStrip strip(size_t s) const;
  // Returns the largest number of strips from one that computes rows, or reads rows of the image,
  // to the last that reads them.
  int64_t reach() const { return reach_; }
  // Returns the last strip that reads retained rows of the value, or -1.
  int64_t last_read(ValueId value) const { return last_read_[IndexOf(value)]; }
  // Strips with the same number take the same memory.
  size_t shape_of(size_t s) const { return strips_[s].shape; }
  // Returns the dim of the value whose elements are its rows; -1: one strip computes the value.
  int dim_of(ValueId value) const { return layers_[IndexOf(value)].dim; }
  // Returns the last rows that the strips compute of the value, without a gap.
  Interval last_rows(ValueId value) const;

 private:
  friend class RowScheduler;
  struct Rows {
    uint32_t value;
    Interval rows;
  };
  struct Strip {
    std::vector<Rows> needs;     // rows read that exist already
    std::vector<Rows> computed;  // new rows
    std::vector<Rows> retains;
    Interval image;
    size_t shape = 0;
  };
  // A value's rows are its elements along `dim`; -1: the value is computed by one strip. The boxes
  // of all strips have the same extents along the other dims.
  struct Layers {
    int dim = -1;
    std::optional<Box> box;   // computed so far, without gaps
    int64_t first_strip = 0;  // that computed rows of `box`
    int64_t end_before = 0;   // of the rows before the last gap
    bool narrow = false;      // a strip has computed less than `box` along the other dims
  };

  Box BoxOf(const Rows& rows) const;

  const PieceRunner* runner_ = nullptr;
  const StreamPhase* phase_ = nullptr;
  int64_t rows_ = 0;
  int64_t first_ = 0;  // strip
  std::vector<Strip> strips_;
  std::vector<Layers> layers_;      // by value
  std::vector<int64_t> last_read_;  // by value
  Box image_;                       // hull of all parts that are read
  int64_t reach_ = 0;
};

// Returns the boxes of the phase's targets in strip `s` of `rows` rows of the first target.
std::vector<ValueBox> TargetsOf(const PieceRunner& runner, const StreamPhase& phase, int64_t rows,
                                int64_t s);
// Returns the number of such strips.
int64_t StripCount(const PieceRunner& runner, const StreamPhase& phase, int64_t rows);

}  // namespace msrt
