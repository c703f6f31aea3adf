// Fuses the nodes that follow a Conv, MatMul or Gemm into it: bias, residual addition, activation;
// the result is msrt.FusedConv or msrt.FusedMatMul. An activation after a BatchNormalization that
// could not be folded makes msrt.FusedBatchNormalization. Before: the intermediate values have no
// other use; BatchNormalization is folded. The residual must be computed before the fused node, and
// have exactly the output's shape, in open dims by proof (symbolic_shapes.h).
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status FuseEpilogue(const PassContext& context, Graph* graph);

}  // namespace msrt
