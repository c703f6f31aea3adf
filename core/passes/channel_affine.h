// y = factor * x + shift with one pair for each channel, and what becomes of the constants of a
// Conv, ConvTranspose, Gemm or MatMul when it takes over such a step that stands behind or before
// it. Passes that fold scales share it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ops/op_def.h"

namespace msrt {

struct ChannelAffine {
  std::vector<double> factor, shift;
};

// Which dim of the weights a list of factors belongs to: Conv has its outputs in the outer dim and
// its inputs, counted within a group, in the inner one; for ConvTranspose, and for matrices
// [inputs, outputs], it is the other way round.
enum class WeightDim { kOuter, kInner };

// f32 weights [outer, inner of a group, ...] times a factor for each channel. nullopt where a
// product is not finite, or the number of factors is not that of the channels.
std::optional<ConstTensor> ScaledWeights(const ConstTensor& weights,
                                         std::span<const double> factors, WeightDim dim,
                                         int64_t groups);

// bias * factor + shift, with zeros for an absent bias, which may also be one number for all.
std::optional<ConstTensor> ScaledBias(const ConstTensor* bias, const ChannelAffine& affine);

// What an f32 convolution's bias must gain so that its input may lack `shift`: for each output the
// sum of its weights times the shifts.
std::optional<std::vector<double>> ShiftThroughConv(const ConstTensor& weights,
                                                    std::span<const double> shift, int64_t groups);

}  // namespace msrt
