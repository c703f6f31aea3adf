// What the ops that keep a part of their data find in it. How much they keep is known only with the
// data, so the same functions serve the entries, which need the count for the sizes of outputs, and
// kernels, which need the rest.
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

// The offsets of the elements that are not zero (minus zero is zero, NaN is not), in row-major
// order.
std::vector<int64_t> NonZeroOffsets(const TensorView& x);

// The places in a list of truth values that are true.
std::vector<int64_t> TruePlaces(const TensorView& condition);

// The distinct slices along an axis, or the distinct elements if there is no axis (then `axis` is
// kAllElements).
struct DistinctSlices {
  std::vector<int64_t> first;    // of each distinct slice: where it stands for the first time
  std::vector<int64_t> inverse;  // of each slice: which distinct one it is
  std::vector<int64_t> counts;   // of each distinct slice: how often it stands there
};
inline constexpr int kAllElements = -1;
// Sorted: in ascending order, element by element, NaN after all numbers and equal to itself.
// Otherwise in the order of `first`.
DistinctSlices FindDistinct(const TensorView& x, int axis, bool sorted);

// Boxes that NonMaxSuppression keeps: {batch, class, box}, by batch, class and falling score.
struct SuppressionLimits {
  int64_t boxes_per_class = 0;
  double overlap = 0;  // a box goes if it shares more than this part with a better one
  double score = 0;    // a box goes unless its score is above, if `has_score`
  bool has_score = false;
  bool centers =
      false;  // boxes are {x, y, width, height} around a centre, else two corners {y, x, y, x}
};
// The limits from attributes, or from the data of inputs 2 to 4. `views` are the inputs; absent
// ones have no data.
Result<SuppressionLimits> SuppressionLimitsOf(const OpView& op, std::span<const TensorView> views);
std::vector<std::array<int64_t, 3>> SelectBoxes(const TensorView& boxes, const TensorView& scores,
                                                const SuppressionLimits& limits);

}  // namespace msrt
