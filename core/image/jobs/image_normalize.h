// Normalization of pixels, per channel: (pixel - mean) / std, or pixel * scale + offset, in f32.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace msrt {

// Each list is empty, has one number for all channels, or one for each. `mean` and `std` come
// first: result = ((pixel - mean) / std) * scale + offset. All empty: pixels as they are stored.
struct Normalization {
  std::vector<float> mean = {}, std = {}, scale = {}, offset = {};

  bool empty() const { return mean.empty() && std.empty() && scale.empty() && offset.empty(); }
  // Requires lists of suitable lengths and finite numbers; `std` must not be 0.
  Status Check(int64_t channels) const;
  void Apply(int64_t channel, std::span<float> pixels) const;
};

// Parses "mean=123.7,116.3,103.5 std=58.4,57.1,57.4" or "scale=1/255 offset=-0.5"; parts are
// separated by spaces or semicolons, and a number may be a fraction.
Result<Normalization> ParseNormalization(std::string_view text);

}  // namespace msrt
