// The activation that a fused op applies to each element of its result: the name of a unary op,
// with that op's parameters. The empty name means no activation.
#pragma once

#include <string_view>

#include "ops/op_def.h"

namespace msrt {

// alpha and beta mean what they mean for the op of that name: LeakyRelu, Elu and Swish use alpha,
// HardSigmoid alpha and beta, Clip uses them as lower and upper bound. "GeluTanh" is Gelu with
// approximate = 'tanh'.
inline constexpr std::string_view kActivations[] = {
    "",     "Relu", "LeakyRelu", "Sigmoid", "Tanh",  "HardSigmoid", "HardSwish",
    "Clip", "Gelu", "GeluTanh",  "Elu",     "Swish", "Mish",        "Softplus"};

inline constexpr AttrDef kActivationAttr{
    .name = "activation", .kind = AttrKind::kString, .choices = kActivations};
inline constexpr AttrDef kActivationAlphaAttr{.name = "activation_alpha", .kind = AttrKind::kFloat};
inline constexpr AttrDef kActivationBetaAttr{.name = "activation_beta", .kind = AttrKind::kFloat};

}  // namespace msrt
