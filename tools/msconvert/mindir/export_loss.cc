// Losses over classes as primitives that MindSpore has on the CPU for every rank.
#include "tools/msconvert/mindir/export_lower.h"

namespace msrt::mindir_export {
namespace {

constexpr size_t kClassScores = 0, kLabels = 1, kWeights = 2;

// The loss is minus the score of each label along axis 1; ignored labels do not count.
Status SetLikelihoodLoss(NodeLowering& n, const Ref& scores) {
  const Ref labels = n.Op("Cast", {n.In(kLabels), TypeIdOf(DType::kI64)});
  const auto label = [&](int64_t value) {
    return n.out().Constant(ConstTensor::Of<int64_t>(DType::kI64, {}, std::span(&value, 1)));
  };
  const bool ignores = n.op().Has("ignore_index");
  Ref ignored, known = labels;
  if (ignores) {
    ignored = n.Op("Equal", {labels, label(n.op().Int("ignore_index"))});
    known = n.Op("Select", {ignored, label(0), labels});
  }
  const Ref chosen = n.Op("GatherD", {scores, 1, n.Op("ExpandDims", {known, 1})});
  Ref loss = n.Op("Neg", {n.Op("Squeeze", {chosen, Ints{1}})});
  std::optional<Ref> weights;
  if (n.Has(kWeights)) {
    weights = n.Op("Gather", {n.In(kWeights), known, 0, 0});
    loss = n.Op("Mul", {loss, *weights});
  }
  if (ignores) {
    loss = n.Op("Select", {ignored, n.Number(0), loss});
    if (!weights) weights = n.Op("Cast", {n.Op("LogicalNot", {ignored}), TypeIdOf(n.dtype())});
    else weights = n.Op("Select", {ignored, n.Number(0), *weights});
  }
  const auto sum = [&](const Ref& x) { return n.Op("ReduceSum", {x, Ints{}, false, false}); };
  const std::string_view reduction = n.op().String("reduction");
  if (reduction == "none") n.SetOutput(loss);
  else if (reduction == "sum") n.SetOutput(sum(loss));
  else if (weights) n.SetOutput(n.Op("RealDiv", {sum(loss), sum(*weights)}));
  else n.SetOutput(n.Op("ReduceMean", {loss, Ints{}, false}));
  return OkStatus();
}

Status LowerLikelihood(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank(kClassScores));
  return SetLikelihoodLoss(n, n.In(kClassScores));
}

Status LowerCrossEntropy(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank(kClassScores));
  const Ref logs = n.Op("LogSoftmax", {n.In(kClassScores), 1});
  if (n.Wants(1)) n.SetOutput(1, logs);
  return SetLikelihoodLoss(n, logs);
}

constexpr Lowerer kLossLowerers[] = {{"NegativeLogLikelihoodLoss", LowerLikelihood},
                                     {"SoftmaxCrossEntropyLoss", LowerCrossEntropy}};

}  // namespace

std::span<const Lowerer> LossLowerers() { return kLossLowerers; }

}  // namespace msrt::mindir_export
