// Selections of the ops that keep a part of their data (NonZero, Compress, Unique,
// NonMaxSuppression). The size of the result depends on the data, so the entries call these
// functions for the sizes of outputs and kernels for the elements.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/graph/op_view.h"
#include "core/graph/tensor.h"

namespace msrt {

inline TensorView ViewOf(const ConstTensor& t) {
  return {t.dtype, t.dims, Layout::kPlain, const_cast<std::byte*>(t.bytes.data())};
}

// Returns the offsets of the elements that are not zero (minus zero is zero, NaN is not), in
// row-major order.
std::vector<int64_t> NonZeroOffsets(const TensorView& x);

// Returns the indices of the true elements of a list of bools.
std::vector<int64_t> TrueIndices(const TensorView& condition);

// The distinct slices along an axis, or the distinct elements if `axis` is kAllElements.
struct DistinctSlices {
  std::vector<int64_t> first;    // by distinct slice: its first occurrence
  std::vector<int64_t> inverse;  // by slice: its distinct slice
  std::vector<int64_t> counts;   // by distinct slice: the number of occurrences
};
inline constexpr int kAllElements = -1;
// Sorted: in ascending order, element by element, NaN after all numbers and equal to itself.
// Otherwise in the order of `first`.
DistinctSlices FindDistinct(const TensorView& x, int axis, bool sorted);

// Limits of NonMaxSuppression.
struct SuppressionLimits {
  int64_t boxes_per_class = 0;
  double overlap = 0;  // a box is removed if its overlap with a better one exceeds this
  double score = 0;    // if `has_score`, boxes with at most this score are removed
  bool has_score = false;
  bool centers = false;  // boxes are {x centre, y centre, width, height}, else {y, x, y, x} corners
};
// Reads the limits from attributes, or from the data of inputs 2 to 4. `views` are the inputs;
// absent ones have no data.
Result<SuppressionLimits> SuppressionLimitsOf(const OpView& op, std::span<const TensorView> views);
// Returns the boxes that stay, as {batch, class, box}, by batch, class and descending score.
std::vector<std::array<int64_t, 3>> SelectBoxes(const TensorView& boxes, const TensorView& scores,
                                                const SuppressionLimits& limits);

}  // namespace msrt
