// Puts integer arithmetic in the place of chains that mean it:
//   MatMulInteger or ConvInteger, Cast, Mul by scales           msrt.QuantizedMatMul,
//   msrt.QuantizedConv with an f32 result
// and, where the context says that bytes are computed natively,
//   QLinearMatMul, QLinearConv                                  the same with a quantised result
//   DequantizeLinear, Conv or MatMul or Gemm, Relu or none, QuantizeLinear or none     the same
//   DequantizeLinear, Add, Relu or none, QuantizeLinear         msrt.QuantizedAdd
//   DequantizeLinear, a move or MaxPool, QuantizeLinear         the move alone, where scales and
//   zero points are equal
// Otherwise QLinearConv becomes a Conv between DequantizeLinear and QuantizeLinear, those stay, and
// weights become f32. Results are those of the chain but for the rounding of its f32 arithmetic, so
// a quantised element may be one step off. Before: constants folded, but for weights in few bits.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status RecognizeQuantized(const PassContext& context, Graph* graph);

}  // namespace msrt
