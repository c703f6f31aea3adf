// y = factor * x + shift with one pair for each channel, and the constants of a Conv,
// ConvTranspose, Gemm or MatMul that absorbs such a step before or after it. Shared by the passes
// that fold scales.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ops/op_def.h"

namespace msrt {

struct ChannelAffine {
  std::vector<double> factor, shift;
};

// The dim of the weights that a list of factors belongs to: Conv has its outputs in the outer dim
// and its inputs, counted within a group, in the inner one; for ConvTranspose, and for matrices
// [inputs, outputs], it is the other way round.
enum class WeightDim { kOuter, kInner };

// Returns f32 weights [outer, inner of a group, ...] times a factor for each channel. nullopt if a
// product is not finite, or there are not as many factors as channels.
std::optional<ConstTensor> ScaledWeights(const ConstTensor& weights,
                                         std::span<const double> factors, WeightDim dim,
                                         int64_t groups);

// Returns bias * factor + shift. An absent bias is zero; a bias of one element holds for all
// channels.
std::optional<ConstTensor> ScaledBias(const ConstTensor* bias, const ChannelAffine& affine);

// Returns the addition to an f32 convolution's bias that makes up for leaving out `shift` at its
// input: for each output the sum of its weights times the shifts.
std::optional<std::vector<double>> ShiftThroughConv(const ConstTensor& weights,
                                                    std::span<const double> shift, int64_t groups);

}  // namespace msrt
