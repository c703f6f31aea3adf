// Gradients of losses over classes. msrt.SoftmaxCrossEntropyGrad computes that of
// SoftmaxCrossEntropyLoss in one pass over the scores.
#include "ops/families.h"
#include "ops/grad_builder.h"
#include "ops/gradients.h"
#include "ops/infer.h"

namespace msrt {
namespace {

ValueId SumOfAll(GradBuilder& g, ValueId v) {
  return g.Add("ReduceSum", {v}, {{"keepdims", int64_t{0}}});
}

// The targets of a loss, as nodes: a class that exists for each sample, and the weight of the
// sample, which is zero if it is ignored.
struct Targets {
  ValueId classes, weights;
};

Targets TargetsOf(GradBuilder& g, ValueId target, ValueId class_weights, ValueId scores) {
  Targets t{target, kNoValue};
  ValueId ignored = kNoValue;
  if (g.op().Has("ignore_index")) {
    const ValueId index = g.Scalar(static_cast<double>(g.op().Int("ignore_index")), target);
    ignored = g.Add("Equal", {target, index});
    t.classes = g.Add("Where", {ignored, g.Scalar(0, target), target});
  }
  t.weights = class_weights == kNoValue
                  ? g.Add("Expand", {g.Scalar(1, scores), g.ShapeOf(target)})
                  : g.Add("Gather", {class_weights, t.classes}, {{"axis", int64_t{0}}});
  if (ignored != kNoValue) t.weights = g.Add("Where", {ignored, g.Scalar(0, scores), t.weights});
  return t;
}

// The loss of log-probabilities, of primitives.
ValueId LogLikelihoodLoss(GradBuilder& g, ValueId log_probabilities, ValueId target,
                          ValueId class_weights) {
  const auto list = std::vector<int64_t>{1};
  const Targets t = TargetsOf(g, target, class_weights, log_probabilities);
  const ValueId column = g.Add("Unsqueeze", {t.classes}, {{"axes", list}});
  const ValueId picked = g.Add(
      "Squeeze", {g.Add("GatherElements", {log_probabilities, column}, {{"axis", int64_t{1}}})},
      {{"axes", list}});
  const ValueId losses = g.Negative(g.Times(picked, t.weights));
  const std::string_view reduction = g.op().String("reduction");
  if (reduction == "none") return losses;
  const ValueId sum = SumOfAll(g, losses);
  return reduction == "sum" ? sum : g.Over(sum, SumOfAll(g, t.weights));
}

}  // namespace

Status GradNegativeLogLikelihoodLoss(GradBuilder& g) {
  g.SetByComposition({LogLikelihoodLoss(g, g.input(0), g.input(1), g.input(2))});
  return OkStatus();
}

Status GradSoftmaxCrossEntropyLoss(GradBuilder& g) {
  if (g.wants(2)) {  // class weights that are learned: rare, so not in the gradient op
    const ValueId log_probabilities = g.Add("LogSoftmax", {g.input(0)}, {{"axis", int64_t{1}}});
    g.SetByComposition(
        {LogLikelihoodLoss(g, log_probabilities, g.input(1), g.input(2)), log_probabilities});
    return OkStatus();
  }
  ValueId gradient = kNoValue;
  if (g.grad(0) != kNoValue) {
    std::vector<ValueId> inputs{g.grad(0), g.input(0), g.input(1)};
    if (g.has_input(2)) inputs.push_back(g.input(2));
    gradient = g.AddMsrt("SoftmaxCrossEntropyGrad", std::move(inputs), g.op().attrs());
  }
  if (g.grad(1) != kNoValue) {
    const ValueId part =
        g.AddMsrt("LogSoftmaxGrad", {g.grad(1), g.output(1)}, {{"axis", int64_t{1}}});
    gradient = gradient == kNoValue ? part : g.Plus(gradient, part);
  }
  g.Set(0, gradient);
  return OkStatus();
}

// ---- SoftmaxCrossEntropyGrad --------------------------------------------------------------------

namespace {

constexpr size_t kDLoss = 0, kScoresOfLoss = 1, kLabels = 2, kClassWeights = 3;

Status InferCrossEntropyGrad(InferContext& c) {
  const Type &loss = c.input(kDLoss), &scores = c.input(kScoresOfLoss), &labels = c.input(kLabels);
  const bool none = c.op().String("reduction") == "none";
  if (!none) MSRT_RETURN_IF_ERROR(CheckRank(c, kDLoss, 0));
  if (scores.rank_known) {
    if (scores.rank() < 2)
      return InvalidModel("the scores have shape ", scores.dims, ", must be [N, C, ...]");
    Dims samples = scores.dims;
    samples.erase(1);
    for (const size_t i : {kLabels, kDLoss}) {
      const Type& t = i == kLabels ? labels : loss;
      if ((i == kDLoss && !none) || !t.rank_known) continue;
      MSRT_RETURN_IF_ERROR(CheckRank(c, i, samples.rank()));
      for (int d = 0; d < samples.rank(); ++d) {
        MSRT_RETURN_IF_ERROR(
            SameDim(samples[d], t.dims[d], StrCat("a dim of the scores and of input ", i))
                .status());
      }
    }
    if (c.has_input(kClassWeights)) {
      MSRT_RETURN_IF_ERROR(CheckRank(c, kClassWeights, 1));
      if (c.input(kClassWeights).rank_known) {
        MSRT_RETURN_IF_ERROR(
            SameDim(c.dims(kClassWeights)[0], scores.dims[1], "the weights and the classes")
                .status());
      }
    }
  }
  c.SetOutput(0, scores);
  return OkStatus();
}

// One axis for each axis of the labels.
Status CrossEntropyGradAxes(const OpView& op, IterationSpace* space) {
  if (op.String("reduction") == "mean")
    return Unsupported("a mean cannot be cut, since its divisor needs all samples");
  for (int64_t d : op.input(kLabels).dims) space->Add(AxisKind::kParallel, d);
  return OkStatus();
}

Box ScoresOfSamples(const OpView& op, const Box& box) {
  Box scores;
  for (int i = 0; i < box.rank(); ++i) {
    scores.push_back(box[i]);
    if (i == 0) scores.push_back({0, op.input(kScoresOfLoss).dims[1]});
  }
  return scores;
}

Status CrossEntropyGradOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  if (op.String("reduction") == "none") inputs[kDLoss] = box;
  inputs[kScoresOfLoss] = ScoresOfSamples(op, box);
  inputs[kLabels] = box;
  if (op.has_input(kClassWeights)) inputs[kClassWeights] = Box::Whole(op.input(kClassWeights).dims);
  return OkStatus();
}

Status CrossEntropyGradResults(const OpView& op, const Box& box, std::span<Box> outputs) {
  outputs[0] = ScoresOfSamples(op, box);
  return OkStatus();
}

Cost CostCrossEntropyGrad(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  cost.flops = 6.0 * static_cast<double>(op.input(kScoresOfLoss).elements());
  return cost;
}

// (softmax(scores) - one_hot(labels)) * dLoss * weight of the sample / sum of the weights
Status GradCrossEntropyGrad(GradBuilder& g) {
  const ValueId scores = g.input(kScoresOfLoss);
  const Type type = g.type(scores);
  if (!type.rank_known || !IsKnown(type.dims[1]))
    return Unsupported("the number of classes is not known; declare it");
  const Targets t = TargetsOf(g, g.input(kLabels), g.input(kClassWeights), scores);
  ValueId factor = g.Times(t.weights, g.input(kDLoss));
  if (g.op().String("reduction") == "mean") factor = g.Over(factor, SumOfAll(g, t.weights));
  factor = g.Add("Unsqueeze", {factor}, {{"axes", std::vector<int64_t>{1}}});
  const ValueId values = g.CastTo(
      g.Constant("off_on", ConstTensor::Of<float>(DType::kF32, {2}, std::vector<float>{0, 1})),
      scores);
  const ValueId right = g.AddNode("", "OneHot", {t.classes, kNoValue, values},
                                  {{"axis", int64_t{1}}, {"depth", type.dims[1]}}, 1)[0];
  const ValueId softmax = g.Add("Softmax", {scores}, {{"axis", int64_t{1}}});
  g.SetByComposition({g.Times(g.Minus(softmax, right), factor)});
  return OkStatus();
}

constexpr SpaceDef kCrossEntropyGradSpace{.axes = CrossEntropyGradAxes,
                                          .operands = CrossEntropyGradOperands,
                                          .results = CrossEntropyGradResults};
constexpr std::string_view kGradReductions[] = {"mean", "sum", "none"};
constexpr AttrDef kCrossEntropyGradAttrs[] = {
    {.name = "reduction",
     .kind = AttrKind::kString,
     .default_string = "mean",
     .choices = kGradReductions},
    {.name = "ignore_index"},
};
constexpr ParamDef kCrossEntropyGradInputs[] = {{"dLoss", kFloatTypes, ParamDef::kRequired, 1},
                                                {"scores", kFloatTypes, ParamDef::kRequired, 1},
                                                {"labels", kIndexTypes},
                                                {"weights", kFloatTypes, ParamDef::kOptional, 1}};

constexpr OpDef kLossGradOps[] = {
    {.name = "SoftmaxCrossEntropyGrad",
     .domain = "msrt",
     .version = 1,
     .attrs = kCrossEntropyGradAttrs,
     .inputs = kCrossEntropyGradInputs,
     .infer = InferCrossEntropyGrad,
     .grad = GradCrossEntropyGrad,
     .space = &kCrossEntropyGradSpace,
     .cost = CostCrossEntropyGrad},
};

}  // namespace

std::span<const OpDef> LossGradOps() { return kLossGradOps; }

}  // namespace msrt
