// One axis of a slice with ONNX's meaning of start, end and step, reduced to: elements start + step
// * i for i < count.
#pragma once

#include <algorithm>
#include <cstdint>

namespace msrt {

struct SliceAxis {
  int64_t start = 0, step = 1, count = 0;
};

// Requires step != 0 and 0 <= extent < 2^62. Takes any start, end and step; every element of the
// result is in [0, extent).
inline SliceAxis NormalizeSlice(int64_t start, int64_t end, int64_t step, int64_t extent) {
  SliceAxis s;
  // A step beyond the extent selects one element, whatever its size.
  s.step = std::clamp(step, -(extent + 1), extent + 1);
  if (extent == 0) return s;
  if (start < 0) start += extent;
  if (end < 0) end += extent;
  int64_t distance;
  if (step > 0) {
    s.start = std::clamp<int64_t>(start, 0, extent);
    distance = std::clamp<int64_t>(end, 0, extent) - s.start;
  } else {
    s.start = std::clamp<int64_t>(start, 0, extent - 1);
    distance = s.start - std::clamp<int64_t>(end, -1, extent - 1);
  }
  if (distance <= 0) s.start = 0;
  else s.count = (distance - 1) / (step > 0 ? s.step : -s.step) + 1;
  return s;
}

}  // namespace msrt
