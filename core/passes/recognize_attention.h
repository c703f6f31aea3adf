// Puts an Attention node in the place of MatMul(q, k^T), scale, mask, Softmax, MatMul(v), as PyTorch and transformers write it: the scale
// on the scores, on q, on k or on both; the mask added, or chosen by Where against minus infinity; a guard against NaN around the softmax.
// Where heads are split off before and merged behind by Reshape and Transpose, the Attention reads and writes them packed instead. A row
// that may see no key is zero then, as Attention has it, where the chain without a guard gives NaN. Before: moves eliminated. After a match
// the values inside have no other use; batch, heads and what the mask is broadcast to are proven, not assumed.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status RecognizeAttention(const PassContext& context, Graph* graph);

}  // namespace msrt
