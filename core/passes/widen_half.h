// Computes in f32 where a graph computes in f16 or bf16 and no delegate does so natively
// (PassContext::computes_natively): regions of such nodes are made f32 as a whole, with a Cast
// wherever a value enters or leaves one. A file keeps its small weights; loading widens them.
// Before: types inferred. After: the types of the graph's inputs and outputs, of called graphs,
// state and lists are what they were. Results between the nodes of a region are not rounded, nor do
// they overflow at 65504; a Cast of the model to f16 or bf16 still rounds.
//
// Nodes that stay as they are: control flow, state, random numbers, unknown ops, and those that
// decide something by comparing or counting (ArgMax, TopK, Equal, IsInf, NonZero, a Cast to
// integers): they see rounded numbers, so that ties are what the model says. Nodes that only move
// elements are on the side of a border where fewer elements must be converted: an embedding stays
// small, its rows become f32.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status WidenHalf(const PassContext& context, Graph* graph);

}  // namespace msrt
