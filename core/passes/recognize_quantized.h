// Replaces chains that mean integer arithmetic by ops that compute with integers:
//   MatMulInteger or ConvInteger, Cast, Mul by scales
//       -> msrt.QuantizedMatMul or msrt.QuantizedConv with an f32 result
// If the context says that bytes are computed natively, also:
//   QLinearMatMul or QLinearConv
//       -> the same with a quantised result
//   DequantizeLinear, Conv or MatMul or Gemm, optional Relu, optional QuantizeLinear
//       -> the same
//   DequantizeLinear, Add, optional Relu, QuantizeLinear
//       -> msrt.QuantizedAdd
//   DequantizeLinear, a move or MaxPool, QuantizeLinear
//       -> the move alone, if scales and zero points are equal
// Otherwise QLinearConv becomes a Conv between DequantizeLinear and QuantizeLinear, the other
// chains stay, and weights become f32. Results are those of the chain up to the rounding of its f32
// arithmetic, so a quantised element may be off by one step. Before: constants folded, except for
// weights in few bits.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status RecognizeQuantized(const PassContext& context, Graph* graph);

}  // namespace msrt
