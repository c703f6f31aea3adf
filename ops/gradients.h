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
Status GradMod(GradBuilder&);
Status GradPow(GradBuilder&);
Status GradMax(GradBuilder&);  // and Min
Status GradSum(GradBuilder&);
Status GradMean(GradBuilder&);
Status GradPRelu(GradBuilder&);
Status GradWhere(GradBuilder&);

// unary_grad.cc
Status GradIdentity(GradBuilder&);
Status GradCast(GradBuilder&);
Status GradNeg(GradBuilder&);
Status GradAbs(GradBuilder&);
Status GradReciprocal(GradBuilder&);
Status GradSqrt(GradBuilder&);
Status GradExp(GradBuilder&);
Status GradLog(GradBuilder&);
Status GradErf(GradBuilder&);
Status GradSin(GradBuilder&);
Status GradCos(GradBuilder&);
Status GradTan(GradBuilder&);
Status GradAsin(GradBuilder&);
Status GradAcos(GradBuilder&);
Status GradAtan(GradBuilder&);
Status GradSinh(GradBuilder&);
Status GradCosh(GradBuilder&);
Status GradTanh(GradBuilder&);
Status GradAsinh(GradBuilder&);
Status GradAcosh(GradBuilder&);
Status GradAtanh(GradBuilder&);
Status GradSigmoid(GradBuilder&);
Status GradRelu(GradBuilder&);
Status GradLeakyRelu(GradBuilder&);
Status GradElu(GradBuilder&);
Status GradSelu(GradBuilder&);
Status GradCelu(GradBuilder&);
Status GradThresholdedRelu(GradBuilder&);
Status GradHardSigmoid(GradBuilder&);
Status GradHardSwish(GradBuilder&);
Status GradSoftplus(GradBuilder&);
Status GradSoftsign(GradBuilder&);
Status GradGelu(GradBuilder&);
Status GradMish(GradBuilder&);
Status GradSwish(GradBuilder&);
Status GradShrink(GradBuilder&);
Status GradClip(GradBuilder&);

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

// select_grad.cc
Status GradTopK(GradBuilder&);
Status GradCompress(GradBuilder&);
Status GradTrilu(GradBuilder&);

// random_grad.cc
Status GradDropout(GradBuilder&);

// determinant_grad.cc
Status GradDet(GradBuilder&);

// moments_grad.cc
Status GradMoments(GradBuilder&);
Status GradNormalize(GradBuilder&);
Status GradLrn(GradBuilder&);

// signal_grad.cc
Status GradDft(GradBuilder&);
Status GradStft(GradBuilder&);

// loss_grad.cc
Status GradNegativeLogLikelihoodLoss(GradBuilder&);
Status GradSoftmaxCrossEntropyLoss(GradBuilder&);

// shape_grad.cc
Status GradReshape(GradBuilder&);  // any op that keeps the order of elements
Status GradExpand(GradBuilder&);

// reduce_grad.cc
Status GradReduceSum(GradBuilder&);
Status GradReduceMean(GradBuilder&);
Status GradReduceMax(GradBuilder&);  // and Min
Status GradReduceProd(GradBuilder&);
Status GradReduceL1(GradBuilder&);
Status GradReduceL2(GradBuilder&);
Status GradReduceLogSum(GradBuilder&);
Status GradReduceLogSumExp(GradBuilder&);
Status GradReduceSumSquare(GradBuilder&);
Status GradCumSum(GradBuilder&);

// softmax_grad.cc
Status GradSoftmax(GradBuilder&);
Status GradLogSoftmax(GradBuilder&);

// conv_grad.cc
Status GradConv(GradBuilder&);
Status GradConvTranspose(GradBuilder&);
Status GradFusedConv(GradBuilder&);

// pool_grad.cc
Status GradMaxPool(GradBuilder&);
Status GradAveragePool(GradBuilder&);
Status GradLpPool(GradBuilder&);
Status GradGlobalAveragePool(GradBuilder&);
Status GradGlobalMaxPool(GradBuilder&);
Status GradGlobalLpPool(GradBuilder&);

// normalization_grad.cc
Status GradBatchNormalization(GradBuilder&);  // with given statistics, plain and fused
Status GradBatchNormTraining(GradBuilder&);
Status GradInstanceNormalization(GradBuilder&);
Status GradGroupNormalization(GradBuilder&);
Status GradLayerNormalization(GradBuilder&);
Status GradRmsNormalization(GradBuilder&);
Status GradLpNormalization(GradBuilder&);
Status GradMeanVarianceNormalization(GradBuilder&);

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
