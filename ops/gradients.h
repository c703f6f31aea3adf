// The gradient rules of ops (OpDef::grad), by the file that has them: ops/<family>_grad.cc. A rule
// is built of ops that have rules themselves; where no op fits, the file also has gradient ops.
#pragma once

#include "ops/op_def.h"

namespace msrt {

// binary_grad.cc
Status GradAdd(GradBuilder&);
Status GradSub(GradBuilder&);
Status GradMul(GradBuilder&);
Status GradDiv(GradBuilder&);

// unary_grad.cc
Status GradNeg(GradBuilder&);
Status GradReciprocal(GradBuilder&);

// movement_grad.cc
Status GradTranspose(GradBuilder&);
Status GradConcat(GradBuilder&);
Status GradSplit(GradBuilder&);
Status GradSlice(GradBuilder&);
Status GradTile(GradBuilder&);
Status GradReverseSequence(GradBuilder&);

// pad_grad.cc
Status GradPad(GradBuilder&);

// gather_grad.cc
Status GradGather(GradBuilder&);
Status GradGatherElements(GradBuilder&);
Status GradGatherND(GradBuilder&);
Status GradScatterElements(GradBuilder&);
Status GradScatterND(GradBuilder&);
Status GradOneHot(GradBuilder&);

// shape_grad.cc
Status GradReshape(GradBuilder&);  // any op that keeps the order of elements
Status GradExpand(GradBuilder&);

// reduce_grad.cc
Status GradReduceSum(GradBuilder&);

// conv_grad.cc
Status GradConv(GradBuilder&);
Status GradConvTranspose(GradBuilder&);
Status GradFusedConv(GradBuilder&);

// activation_grad.cc: adds the activation of a fused op, by its attributes, to `v`.
ValueId AddActivation(GradBuilder&, ValueId v);

// matmul_grad.cc
Status GradMatMul(GradBuilder&);
Status GradGemm(GradBuilder&);
Status GradFusedMatMul(GradBuilder&);

// einsum_grad.cc
Status GradEinsum(GradBuilder&);

// attention_grad.cc
Status GradAttention(GradBuilder&);  // also msrt.FusedAttention
Status GradAttentionPart(GradBuilder&);

// rotary_grad.cc
Status GradRotaryEmbedding(GradBuilder&);

// resize_grad.cc
Status GradResize(GradBuilder&);
Status GradDepthToSpace(GradBuilder&);
Status GradSpaceToDepth(GradBuilder&);

// unpool_grad.cc
Status GradMaxUnpool(GradBuilder&);
Status GradCol2Im(GradBuilder&);

// sampling_grad.cc
Status GradGridSample(GradBuilder&);
Status GradAffineGrid(GradBuilder&);
Status GradRoiAlign(GradBuilder&);

// deform_conv_grad.cc
Status GradDeformConv(GradBuilder&);

// recurrent_grad.cc: RNN, GRU and LSTM
Status GradRecurrent(GradBuilder&);

}  // namespace msrt
