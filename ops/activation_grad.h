// The activation of a fused op (ops/activation.h) as nodes, for gradients by composition.
#pragma once

#include "ops/grad_builder.h"

namespace msrt {

// `v` with the activation that the node's attributes name.
ValueId Activated(GradBuilder& g, ValueId v);

}  // namespace msrt
