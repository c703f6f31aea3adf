// Folds moves of data around matrix products into the products. A Transpose of the last two dims
// before a MatMul or Gemm becomes its transA or transB: a delegate packs a constant once, but the
// Transpose would run every time. Rows that are flattened before a matrix product and unflattened
// after it become the rows of one batched product. The result is msrt.FusedMatMul if MatMul lacks
// the attribute. Before: attention is recognised, since its patterns have plain products. After:
// constants are shared as before; a Transpose stays if other nodes read it.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status SimplifyProducts(const PassContext& context, Graph* graph);

}  // namespace msrt
