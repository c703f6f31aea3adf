// Losses over classes: NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss. Scores are [N, C, d1,
// ...], targets [N, d1, ...].
#include "ops/expansions.h"
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"

namespace msrt {
namespace {

// Returns the dims of the losses of all samples: those of the scores without the classes.
Result<Dims> SampleDims(const InferContext& c) {
  const Type &scores = c.input(0), &target = c.input(1);
  if (scores.rank_known && scores.rank() < 2)
    return InvalidModel("input 0 has shape ", scores.dims, ", must be [N, C, ...]");
  if (scores.rank_known && target.rank_known && target.rank() != scores.rank() - 1) {
    return InvalidModel("input 1 has shape ", target.dims, ", must be that of input 0, ",
                        scores.dims, ", without the classes");
  }
  Dims dims = target.rank_known ? target.dims : scores.dims;
  if (!target.rank_known) dims.erase(1);
  if (!scores.rank_known || !target.rank_known) return dims;
  for (int i = 0; i < dims.rank(); ++i) {
    MSRT_ASSIGN_OR_RETURN(dims[i], SameDim(scores.dims[i == 0 ? 0 : i + 1], target.dims[i],
                                           "a dim of scores and target"));
  }
  return dims;
}

Status CheckWeight(const InferContext& c) {
  if (!c.has_input(2)) return OkStatus();
  MSRT_RETURN_IF_ERROR(CheckRank(c, 2, 1));
  if (!c.input(2).rank_known || !c.input(0).rank_known) return OkStatus();
  return SameDim(c.dims(2)[0], c.dims(0)[1], "the weights and the classes").status();
}

Status InferLoss(InferContext& c) {
  const DType dtype = c.dtype(0);
  const bool ranked = c.input(0).rank_known || c.input(1).rank_known;
  Dims samples;
  if (ranked) {
    MSRT_ASSIGN_OR_RETURN(samples, SampleDims(c));
    if (samples.rank() + 1 > kMaxRank)
      return InvalidModel("the scores would have more than ", kMaxRank, " dims");
    MSRT_RETURN_IF_ERROR(CheckWeight(c));
  }
  if (c.op().String("reduction") != "none") c.SetOutput(0, dtype, {});
  else if (ranked) c.SetOutput(0, dtype, samples);
  else c.SetOutput(0, Type::UnrankedTensor(dtype));
  c.SetOutput(1, c.input(0));
  return OkStatus();
}

// ---- iteration space: one axis for each axis of the target --------------------------------------

Status LossAxes(const OpView& op, IterationSpace* space) {
  const std::string_view reduction = op.String("reduction");
  if (reduction == "mean")
    return Unsupported("a mean cannot be cut, since its divisor needs all samples: expand it");
  for (int64_t d : op.input(1).dims) {
    if (reduction == "sum") space->Add(AxisKind::kReduce, d, Monoid::kSum);
    else space->Add(AxisKind::kParallel, d);
  }
  return OkStatus();
}

// Returns the box of scores for a box of samples: all classes.
Box ScoresOf(const OpView& op, const Box& box) {
  Box scores;
  for (int i = 0; i < box.rank(); ++i) {
    scores.push_back(box[i]);
    if (i == 0) scores.push_back({0, op.input(0).dims[1]});
  }
  return scores;
}

Status LossOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  inputs[0] = ScoresOf(op, box);
  inputs[1] = box;
  if (op.has_input(2)) inputs[2] = Box::Whole(op.input(2).dims);
  return OkStatus();
}

Status LossResults(const OpView& op, const Box& box, std::span<Box> outputs) {
  if (op.String("reduction") == "none") outputs[0] = box;
  if (outputs.size() > 1) outputs[1] = ScoresOf(op, box);
  return OkStatus();
}

Cost CostOfLogSoftmax(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  cost.flops = 5.0 * static_cast<double>(op.input(0).elements());
  return cost;
}

constexpr SpaceDef kLossSpace{.axes = LossAxes, .operands = LossOperands, .results = LossResults};

constexpr std::string_view kLossReductions[] = {"mean", "sum", "none"};
constexpr AttrDef kLossAttrs[] = {
    {.name = "reduction",
     .kind = AttrKind::kString,
     .default_string = "mean",
     .choices = kLossReductions},
    {.name = "ignore_index"},
};
constexpr ParamDef kLossInputs[] = {{"input", kFloatTypes, ParamDef::kRequired, 1},
                                    {"target", kIndexTypes},
                                    {"weight", kFloatTypes, ParamDef::kOptional, 1}};
constexpr ParamDef kCrossEntropyInputs[] = {{"scores", kFloatTypes, ParamDef::kRequired, 1},
                                            {"labels", kIndexTypes},
                                            {"weights", kFloatTypes, ParamDef::kOptional, 1}};

constexpr OpDef kLossOps[] = {
    {.name = "NegativeLogLikelihoodLoss",
     .attrs = kLossAttrs,
     .inputs = kLossInputs,
     .infer = InferLoss,
     .grad = GradNegativeLogLikelihoodLoss,
     .space = &kLossSpace,
     .expand = ExpandMeanLoss},
    {.name = "SoftmaxCrossEntropyLoss",
     .attrs = kLossAttrs,
     .inputs = kCrossEntropyInputs,
     .max_outputs = 2,
     .infer = InferLoss,
     .grad = GradSoftmaxCrossEntropyLoss,
     .space = &kLossSpace,
     .expand = ExpandMeanLoss,
     .cost = CostOfLogSoftmax},
};

}  // namespace

std::span<const OpDef> LossOps() { return kLossOps; }

}  // namespace msrt
