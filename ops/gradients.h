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

// shape_grad.cc
Status GradReshape(GradBuilder&);  // any op that keeps the order of elements
Status GradExpand(GradBuilder&);

// reduce_grad.cc
Status GradReduceSum(GradBuilder&);

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
Status GradMoments(GradBuilder&);
Status GradNormalize(GradBuilder&);

// activation_grad.cc: adds the activation of a fused op, by its attributes, to `v`.
ValueId AddActivation(GradBuilder&, ValueId v);

// matmul_grad.cc
Status GradMatMul(GradBuilder&);

}  // namespace msrt
