#include "core/passes/channel_affine.h"

#include <algorithm>
#include <cmath>

namespace msrt {
namespace {

bool AllFinite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

// Weights as a matrix of rows and columns; each cell holds the elements of one pair of channels.
struct Grid {
  int64_t rows, columns, inner, groups;
  explicit Grid(const ConstTensor& w, int64_t group_count)
      : rows(w.dims[0]),
        columns(w.dims[1]),
        inner(w.dims.product(2, w.dims.rank())),
        groups(group_count) {}
  bool divides() const { return groups >= 1 && rows % groups == 0 && rows > 0; }
  // The channel of a column, counted over all groups.
  size_t channel(int64_t row, int64_t column) const {
    return static_cast<size_t>(row / (rows / groups) * columns + column);
  }
};

}  // namespace

std::optional<ConstTensor> ScaledWeights(const ConstTensor& weights,
                                         std::span<const double> factors, WeightDim dim,
                                         int64_t groups) {
  if (weights.dtype != DType::kF32 || weights.dims.rank() < 2) return std::nullopt;
  const Grid grid(weights, groups);
  const int64_t channels = dim == WeightDim::kOuter ? grid.rows : grid.columns * groups;
  if (!grid.divides() || static_cast<int64_t>(factors.size()) != channels) return std::nullopt;
  std::vector<float> scaled(static_cast<size_t>(weights.dims.elements()));
  const auto source = weights.As<float>();
  size_t at = 0;
  for (int64_t r = 0; r < grid.rows; ++r) {
    for (int64_t c = 0; c < grid.columns; ++c) {
      const double factor =
          factors[dim == WeightDim::kOuter ? static_cast<size_t>(r) : grid.channel(r, c)];
      for (int64_t i = 0; i < grid.inner; ++i, ++at)
        scaled[at] = static_cast<float>(source[at] * factor);
    }
  }
  if (!AllFinite(scaled)) return std::nullopt;
  return ConstTensor::Floats(weights.dims, scaled);
}

std::optional<ConstTensor> ScaledBias(const ConstTensor* bias, const ChannelAffine& affine) {
  const size_t channels = affine.factor.size();
  std::vector<float> result(channels, 0);
  if (bias != nullptr) {
    if (bias->dtype != DType::kF32) return std::nullopt;
    const auto old = bias->As<float>();
    if (old.size() != channels && old.size() != 1) return std::nullopt;
    for (size_t c = 0; c < channels; ++c) result[c] = old[old.size() == 1 ? 0 : c];
  }
  for (size_t c = 0; c < channels; ++c)
    result[c] = static_cast<float>(result[c] * affine.factor[c] + affine.shift[c]);
  if (!AllFinite(result)) return std::nullopt;
  return ConstTensor::Floats({static_cast<int64_t>(channels)}, result);
}

std::optional<std::vector<double>> ShiftThroughConv(const ConstTensor& weights,
                                                    std::span<const double> shift, int64_t groups) {
  if (weights.dtype != DType::kF32 || weights.dims.rank() < 3) return std::nullopt;
  const Grid grid(weights, groups);
  if (!grid.divides() || static_cast<int64_t>(shift.size()) != grid.columns * groups)
    return std::nullopt;
  std::vector<double> gained(static_cast<size_t>(grid.rows), 0);
  const auto source = weights.As<float>();
  size_t at = 0;
  for (int64_t r = 0; r < grid.rows; ++r) {
    for (int64_t c = 0; c < grid.columns; ++c) {
      double sum = 0;
      for (int64_t i = 0; i < grid.inner; ++i) sum += source[at++];
      gained[static_cast<size_t>(r)] += sum * shift[grid.channel(r, c)];
    }
  }
  return gained;
}

}  // namespace msrt
