// Finer forms of ops that must keep an axis whole (OpDef::expand): graphs of ops whose axes can all
// be cut. Intermediate values are f64, so that a result is rounded once, as that of the op is.
#pragma once

#include "ops/op_def.h"

namespace msrt {

// Normalisations: moments of the slice, then their application.
Result<Graph> ExpandInstanceNormalization(const OpView& op);
Result<Graph> ExpandGroupNormalization(const OpView& op);
Result<Graph> ExpandLayerNormalization(const OpView& op);
Result<Graph> ExpandMeanVarianceNormalization(const OpView& op);
Result<Graph> ExpandBatchNormTraining(const OpView& op);
// Averages over the slice, then their application.
Result<Graph> ExpandBatchNormTrainingGrad(const OpView& op);
Result<Graph> ExpandLayerNormGrad(const OpView& op);
// Maximum and sum of exponentials along the axis.
Result<Graph> ExpandSoftmax(const OpView& op);
Result<Graph> ExpandLogSoftmax(const OpView& op);
// A mean over samples: the sum of their losses and the sum of their weights.
Result<Graph> ExpandMeanLoss(const OpView& op);
// msrt.AttentionPart, which can be cut along the keys.
Result<Graph> ExpandAttention(const OpView& op);

}  // namespace msrt
