// Inference, iteration space and cost of Conv, shared by ops that are convolutions with something
// around them. They work on a view whose inputs are X, W and an optional bias.
#pragma once

#include "ops/activation.h"
#include "ops/conv.h"
#include "ops/op_def.h"
#include "ops/window.h"

namespace msrt {

// Output 0 has the element type of X.
Status InferConvolution(InferContext& c);
// Axes: batch, output channels, space..., input channels of a group.
extern const SpaceDef kConvSpace;
Cost ConvCost(const OpView& op);

inline constexpr AttrDef kGroupAttr{
    .name = "group", .default_int = 1, .min_int = 1, .max_int = kMaxWindow};
// Marks a later part of a sum over input channels: only the first part adds bias and residual.
inline constexpr AttrDef kPartialAttr{.name = "partial", .min_int = 0, .max_int = 1, .local = true};
inline constexpr AttrDef kConvAttrs[] = {kAutoPadAttr,        kDilationsAttr, kGroupAttr,
                                         kKernelShapeAttr,    kPadsAttr,      kStridesAttr,
                                         kOutputChannelsAttr, kPartialAttr};

inline constexpr AttrDef kFusedConvAttrs[] = {
    kAutoPadAttr,    kDilationsAttr,       kGroupAttr,          kKernelShapeAttr,
    kPadsAttr,       kStridesAttr,         kOutputChannelsAttr, kPartialAttr,
    kActivationAttr, kActivationAlphaAttr, kActivationBetaAttr};

}  // namespace msrt
