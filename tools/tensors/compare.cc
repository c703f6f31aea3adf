#include "tools/tensors/compare.h"

#include <algorithm>
#include <cmath>

#include "delegates/reference/elements.h"

namespace msrt {

Result<Deviation> Compare(const TensorView& got, const TensorView& want) {
  if (!(got.dims == want.dims))
    return InvalidArgument("has shape ", got.dims, ", the reference has ", want.dims);
  const std::vector<double> ours = reference::Doubles(got), theirs = reference::Doubles(want);
  Deviation d;
  double low = INFINITY, high = -INFINITY;
  for (size_t i = 0; i < ours.size(); ++i) {
    if (std::isfinite(theirs[i])) {
      low = std::min(low, theirs[i]);
      high = std::max(high, theirs[i]);
      d.magnitude = std::max(d.magnitude, std::abs(theirs[i]));
    }
    d.both_nan += std::isnan(ours[i]) && std::isnan(theirs[i]);
    const bool one_nan = std::isnan(ours[i]) != std::isnan(theirs[i]),
               same = ours[i] == theirs[i] || std::isnan(ours[i]);
    const double apart = one_nan ? INFINITY : same ? 0 : std::abs(ours[i] - theirs[i]);
    if (apart > d.largest) {
      d.largest = apart;
      d.element = i;
    }
  }
  d.elements = ours.size();
  d.one_value = std::all_of(theirs.begin(), theirs.end(), [&](double v) {
    return v == theirs[0] || (std::isnan(v) && std::isnan(theirs[0]));
  });
  const double size = high > low    ? high - low
                      : high == low ? std::max(std::abs(high), Deviation::kSmallValue)
                                    : 1;
  d.relative = d.largest / size;
  return d;
}

}  // namespace msrt
