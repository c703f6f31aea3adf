// Replaces chains that compute an activation by one node: Gelu (by erf and by tanh), Swish,
// HardSwish, HardSigmoid, Mish, and Clip from Max, Min, Relu and Clips with constant bounds. The
// order of factors does not matter: a chain is identified by the polynomial and the product that it
// computes. Before: common nodes merged, so that x * x and the like are recognised. Only f32 and
// f64; the values inside a chain have no other use.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status RecognizeActivations(const PassContext& context, Graph* graph);

}  // namespace msrt
