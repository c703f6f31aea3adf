// Computes in f32 where a graph computes in f16 or bf16 and no delegate supports that natively
// (PassContext::computes_natively): regions of such nodes become f32 as a whole, with a Cast
// wherever a value enters or leaves one. A file keeps its small weights; loading widens them.
// Before: types inferred. After: the types of the graph's inputs and outputs, of called graphs,
// state and lists are unchanged. Results inside a region are not rounded and do not overflow at
// 65504; a Cast of the model to f16 or bf16 still rounds.
//
// Nodes that stay narrow: control flow, state, random numbers, unknown ops, and ops that compare or
// count (ArgMax, TopK, Equal, IsInf, NonZero, a Cast to integers): they see rounded numbers, so
// that ties are resolved as in the model. Nodes that only move elements join the side of a border
// where fewer elements must be converted: an embedding stays small, its rows become f32.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status WidenHalf(const PassContext& context, Graph* graph);

}  // namespace msrt
