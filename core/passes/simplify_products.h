// Takes the moves around matrix products into the products. A Transpose of the last two dims in
// front of a MatMul or Gemm becomes its transA or transB: a delegate packs a constant of any size
// once, where the Transpose would run every time. Rows that are flattened in front of a product of
// matrices and unflattened behind it are the rows of one product over batches. The result is a
// msrt.FusedMatMul where MatMul has no such attribute. Before: attention is recognised, whose
// patterns have plain products. After: constants are shared as before; a Transpose stays where
// other nodes read it.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status SimplifyProducts(const PassContext& context, Graph* graph);

}  // namespace msrt
