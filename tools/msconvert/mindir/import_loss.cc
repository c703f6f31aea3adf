// Losses, written out in elementary ops where we have no op of the same meaning.
#include "tools/msconvert/mindir/import_rule.h"

namespace msrt::mindir_import {
namespace {

constexpr std::string_view kReductions[] = {"SUM", "MEAN", "NONE"};

Status SetReduced(PrimitiveCall& call, ValueId loss, std::string_view usual) {
  MSRT_ASSIGN_OR_RETURN(const std::string reduction, call.Choice("reduction", kReductions, usual));
  const AttrList all{{"keepdims", int64_t{0}}};
  if (reduction == "SUM") return call.SetResult(call.Add("ReduceSum", {loss}, all));
  if (reduction == "MEAN") return call.SetResult(call.Add("ReduceMean", {loss}, all));
  if (reduction != "NONE")
    return Unsupported("argument 'reduction' = ", reduction, " is not supported");
  call.SetResult(loss);
  return OkStatus();
}

// The mean over a batch, with classes as numbers.
Status SparseCrossEntropy(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const bool gradient, call.Bool("is_grad", false));
  if (gradient) return Unsupported("it computes a gradient, as for training");
  MSRT_ASSIGN_OR_RETURN(const ValueId logits, call.Tensor("logits"));
  MSRT_ASSIGN_OR_RETURN(const ValueId labels, call.Tensor("labels"));
  return call.SetResult(
      call.Add("SoftmaxCrossEntropyLoss", {logits, labels}, {{"reduction", std::string("mean")}}));
}

// The loss of each row, with classes as probabilities.
Status CrossEntropy(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId logits, call.Tensor("logits"));
  MSRT_ASSIGN_OR_RETURN(const ValueId labels, call.Tensor("labels"));
  MSRT_ASSIGN_OR_RETURN(const ValueId logs,
                        call.Add("LogSoftmax", {logits}, {{"axis", int64_t{-1}}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId product, call.Add("Mul", {labels, logs}));
  MSRT_ASSIGN_OR_RETURN(const ValueId sum,
                        call.Add("ReduceSum", {product},
                                 {{"axes", std::vector<int64_t>{-1}}, {"keepdims", int64_t{0}}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId loss, call.Add("Neg", {sum}));
  MSRT_ASSIGN_OR_RETURN(const ValueId shares,
                        call.Add("Softmax", {logits}, {{"axis", int64_t{-1}}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId slope, call.Add("Sub", {shares, labels}));
  return call.SetTupleResult({loss, slope});
}

// Squares up to `beta`, absolute values beyond.
Status SmoothL1(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId prediction, call.Tensor("prediction"));
  MSRT_ASSIGN_OR_RETURN(const ValueId target, call.Tensor("target"));
  MSRT_ASSIGN_OR_RETURN(const double beta, call.Float("beta", 1));
  if (!(beta > 0)) return Unsupported("argument 'beta' = ", beta, " is not supported");
  const DType dtype = call.type(prediction).dtype;
  MSRT_ASSIGN_OR_RETURN(const ValueId difference, call.Add("Sub", {prediction, target}));
  MSRT_ASSIGN_OR_RETURN(const ValueId size, call.Add("Abs", {difference}));
  MSRT_ASSIGN_OR_RETURN(const ValueId square, call.Add("Mul", {difference, difference}));
  MSRT_ASSIGN_OR_RETURN(const ValueId near,
                        call.Add("Mul", {square, call.Number(dtype, 0.5 / beta)}));
  MSRT_ASSIGN_OR_RETURN(const ValueId far, call.Add("Sub", {size, call.Number(dtype, 0.5 * beta)}));
  MSRT_ASSIGN_OR_RETURN(const ValueId small, call.Add("Less", {size, call.Number(dtype, beta)}));
  MSRT_ASSIGN_OR_RETURN(const ValueId loss, call.Add("Where", {small, near, far}));
  return SetReduced(call, loss, "NONE");
}

// weight * ((1 - t) * x + (1 + (p - 1) * t) * softplus(-x)), which does not overflow.
Status BinaryCrossEntropyOfLogits(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const ValueId t, call.Tensor("target"));
  MSRT_ASSIGN_OR_RETURN(const ValueId weight, call.TensorOrNone("weight"));
  MSRT_ASSIGN_OR_RETURN(const ValueId positive, call.TensorOrNone("pos_weight"));
  const ValueId one = call.Number(call.type(x).dtype, 1);
  MSRT_ASSIGN_OR_RETURN(const ValueId minus, call.Add("Neg", {x}));
  MSRT_ASSIGN_OR_RETURN(ValueId soft, call.Add("Softplus", {minus}));
  if (positive != kNoValue) {
    MSRT_ASSIGN_OR_RETURN(const ValueId more, call.Add("Sub", {positive, one}));
    MSRT_ASSIGN_OR_RETURN(const ValueId scaled, call.Add("Mul", {more, t}));
    MSRT_ASSIGN_OR_RETURN(const ValueId factor, call.Add("Add", {scaled, one}));
    MSRT_ASSIGN_OR_RETURN(soft, call.Add("Mul", {soft, factor}));
  }
  MSRT_ASSIGN_OR_RETURN(const ValueId rest, call.Add("Sub", {one, t}));
  MSRT_ASSIGN_OR_RETURN(const ValueId linear, call.Add("Mul", {rest, x}));
  MSRT_ASSIGN_OR_RETURN(ValueId loss, call.Add("Add", {linear, soft}));
  if (weight != kNoValue) {
    MSRT_ASSIGN_OR_RETURN(loss, call.Add("Mul", {loss, weight}));
  }
  return SetReduced(call, loss, "MEAN");
}

// t * (log t - x), 0 where t is 0.
Status Divergence(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const ValueId t, call.Tensor("target"));
  MSRT_ASSIGN_OR_RETURN(const bool logarithms, call.Bool("log_target", false));
  if (logarithms) return Unsupported("argument 'log_target' is not supported");
  const ValueId zero = call.Number(call.type(x).dtype, 0);
  MSRT_ASSIGN_OR_RETURN(const ValueId logs, call.Add("Log", {t}));
  MSRT_ASSIGN_OR_RETURN(const ValueId difference, call.Add("Sub", {logs, x}));
  MSRT_ASSIGN_OR_RETURN(const ValueId product, call.Add("Mul", {t, difference}));
  MSRT_ASSIGN_OR_RETURN(const ValueId positive, call.Add("Greater", {t, zero}));
  MSRT_ASSIGN_OR_RETURN(const ValueId loss, call.Add("Where", {positive, product, zero}));
  return SetReduced(call, loss, "MEAN");
}

Status Distance(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const ValueId t, call.Tensor("target"));
  MSRT_ASSIGN_OR_RETURN(ValueId loss, call.Add("Sub", {x, t}));
  if (call.target() == "Abs") {
    MSRT_ASSIGN_OR_RETURN(loss, call.Add("Abs", {loss}));
  } else {
    MSRT_ASSIGN_OR_RETURN(loss, call.Add("Mul", {loss, loss}));
  }
  return SetReduced(call, loss, "MEAN");
}

constexpr Rule kLossRules[] = {
    {"SparseSoftmaxCrossEntropyWithLogits", "logits labels", SparseCrossEntropy},
    {"SoftmaxCrossEntropyWithLogits", "logits labels", CrossEntropy},
    {"SmoothL1Loss", "prediction target beta reduction", SmoothL1},
    {"BCEWithLogitsLoss", "input target weight pos_weight reduction", BinaryCrossEntropyOfLogits},
    {"KLDivLoss", "input target", Divergence},
    {"KLDiv", "input target reduction log_target", Divergence},
    {"L1LossExt", "input target reduction", Distance, "Abs"},
    {"MSELossExt", "input target reduction", Distance, "Mul"},
};

}  // namespace

std::span<const Rule> LossRules() { return kLossRules; }

}  // namespace msrt::mindir_import
