// Replaces MatMul(q, k^T), scale, mask, Softmax, MatMul(v) by an Attention node, in the forms that
// PyTorch and transformers write: the scale on the scores, on q, on k or on both; the mask added,
// or chosen by Where against minus infinity; a guard against NaN around the softmax; keys and
// values that are repeated for groups of query heads; a scale for each head; batches of several
// dims. A row whose keys are all hidden has the result of the chain: zeros with the guard
// (Attention), NaN without (msrt.FusedAttention). If heads are split before and merged after by
// Reshape and Transpose, the node reads and writes them packed instead. Before: moves eliminated.
// After a match the values inside have no other use; batch, heads and the broadcast dims of the
// mask are proven, not assumed.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status RecognizeAttention(const PassContext& context, Graph* graph);

}  // namespace msrt
