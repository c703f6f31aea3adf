// Intervals and boxes of integers, in global coordinates: the algebra under splitting, halos, tiles
// and streaming.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/dims.h"
#include "core/base/status.h"

namespace msrt {

// [begin, end); empty when end <= begin.
struct Interval {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end > begin ? end - begin : 0; }
  bool empty() const { return end <= begin; }
  bool Contains(Interval o) const { return o.empty() || (begin <= o.begin && o.end <= end); }
  bool operator==(const Interval&) const = default;
};
inline Interval Intersect(Interval a, Interval b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}
// The smallest interval that contains both.
inline Interval Hull(Interval a, Interval b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}
// The smallest interval of [0, extent) that contains `i` and whose ends are multiples of `granule`
// or the extent. Requires an interval of [0, extent); a granule below 2 changes nothing.
inline Interval AlignOutward(Interval i, int64_t granule, int64_t extent) {
  if (i.empty() || granule < 2) return i;
  if (granule >= extent) return {0, extent};
  const int64_t rest = i.end % granule;
  return {i.begin - i.begin % granule,
          rest == 0 ? i.end : std::min(extent, i.end - rest + granule)};
}
inline void AppendTo(std::string* out, Interval i) {
  StrAppend(out, "[", i.begin, ", ", i.end, ")");
}

// A product of intervals. Iteration spaces have more axes than a tensor has dims (a batched matmul
// of rank 8 has 9).
class Box {
 public:
  static constexpr int kMaxAxes = 16;
  Box() = default;
  // The box of a whole tensor or iteration space.
  static Box Whole(std::span<const int64_t> extents) {
    Box b;
    for (int64_t e : extents) b.push_back({0, e});
    return b;
  }

  int rank() const { return rank_; }
  Interval operator[](int i) const { return axes_[static_cast<size_t>(i)]; }
  Interval& operator[](int i) { return axes_[static_cast<size_t>(i)]; }
  void push_back(Interval i) {
    MSRT_CHECK(rank_ < kMaxAxes);
    axes_[static_cast<size_t>(rank_++)] = i;
  }
  bool empty() const {
    for (int i = 0; i < rank_; ++i) {
      if ((*this)[i].empty()) return true;
    }
    return false;
  }
  int64_t volume() const {
    int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= (*this)[i].size();
    return n;
  }
  // The extents, as the dims of a tensor that holds just this box. Requires rank() <= kMaxRank.
  Dims dims() const {
    Dims d;
    for (int i = 0; i < rank_; ++i) d.push_back((*this)[i].size());
    return d;
  }
  bool operator==(const Box& o) const {
    return rank_ == o.rank_ && std::equal(axes_.begin(), axes_.begin() + rank_, o.axes_.begin());
  }

 private:
  std::array<Interval, kMaxAxes> axes_{};
  int rank_ = 0;
};
inline void AppendTo(std::string* out, const Box& box) {
  for (int i = 0; i < box.rank(); ++i) StrAppend(out, i == 0 ? "" : " x ", box[i]);
  if (box.rank() == 0) out->append("[]");
}

Box Intersect(const Box& a, const Box& b);  // requires equal ranks
// The smallest box that contains both, of which an empty one counts as nothing. Requires equal
// ranks.
Box Hull(const Box& a, const Box& b);
bool Contains(const Box& outer, const Box& inner);  // requires equal ranks

// These return the part of an input axis that an output interval needs, clipped to [0, extent).
// For a window of `kernel` taps, `stride` and `dilation` apart, with `pad` before (convolution,
// pooling):
Interval WindowNeeds(Interval out, int64_t stride, int64_t dilation, int64_t kernel, int64_t pad,
                     int64_t extent);
// For the same window transposed, where input x touches outputs stride*x + dilation*t - pad:
Interval TransposedWindowNeeds(Interval out, int64_t stride, int64_t dilation, int64_t kernel,
                               int64_t pad, int64_t extent);
// For the elements offset + step*i with i in `out` (slices); `step` may be negative:
Interval AffineNeeds(Interval out, int64_t offset, int64_t step, int64_t extent);

// The part of a broadcast tensor that a box of the output reads: dims align at the right, a dim of
// 1 is read whole. Requires out.rank() >= dims.rank().
Box BroadcastNeeds(const Box& out, const Dims& dims);

}  // namespace msrt
