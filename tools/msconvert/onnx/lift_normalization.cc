// Rules for normalisations, Softmax and similar ops, and Dropout.
#include <algorithm>

#include "tools/msconvert/onnx/lift.h"

namespace msrt::onnx_import {
namespace {

// Before opset 13 the tensor was treated as a matrix, split at `axis`.
Status LiftSoftmaxLike(NodeLift& n) {
  if (n.opset() >= 13) return n.Pass();
  const int64_t axis = n.Int("axis", 1);
  const Type& type = n.type(0);
  if (!type.rank_known)
    return Unsupported("its meaning before opset 13 needs the rank of the input");
  if (axis == type.rank() - 1 || axis == -1) {
    n.attrs().Set("axis", int64_t{-1});
    return n.Pass();
  }
  MSRT_ASSIGN_OR_RETURN(const ValueId flat, n.Add("Flatten", {n.input(0)}, {{"axis", axis}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId soft, n.Add(n.op(), {flat}, {{"axis", int64_t{1}}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId shape, n.Add("Shape", {n.input(0)}));
  MSRT_ASSIGN_OR_RETURN(const ValueId out, n.Add("Reshape", {soft, shape}));
  n.SetOutput(0, out);
  return OkStatus();
}

bool IsZero(const ConstTensor* t) {
  return t != nullptr && std::all_of(t->bytes.begin(), t->bytes.end(),
                                     [](std::byte b) { return b == std::byte{0}; });
}

// Before opset 10, the mask had the type of the data.
Status SetMask(NodeLift& n, ValueId mask) {
  if (n.opset() < 10) {
    MSRT_ASSIGN_OR_RETURN(mask, n.Add("Cast", {mask}, {{"to", n.type(0).dtype}}));
  }
  n.SetOutput(1, mask);
  return OkStatus();
}

// Whether the dropout is known to be on or off; an error if it is not known.
Result<bool> IsTraining(const NodeLift& n) {
  if (n.opset() < 7) return n.Int("is_test", 1) == 0;
  if (!n.has_input(2) || IsZero(n.constant(2)) || IsZero(n.constant(1))) return false;
  if (n.constant(2) == nullptr)
    return Unsupported("training_mode is an input of the model: make it a constant");
  return true;
}

// A dropout that drops, or with `training` = 0 one that drops when a trainer says so.
Status LiftTrainingDropout(NodeLift& n, int64_t training) {
  AttrList attrs{{"training", training}, {"ratio", n.Float("ratio", 0.5)}};
  if (n.has_input(1)) {
    const ConstTensor* ratio = n.constant(1);
    if (ratio == nullptr || ratio->dtype != DType::kF32 || ratio->dims.elements() != 1)
      return Unsupported("ratio must be a constant of one f32 for training");
    attrs.Set("ratio", static_cast<double>(ratio->As<float>()[0]));
  }
  if (n.Has("seed")) attrs.Set("seed", static_cast<double>(n.Int("seed", 0)));
  MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                        n.AddMany("", "Dropout", {n.input(0)}, std::move(attrs), 2));
  n.SetOutput(0, outputs[0]);
  return n.wants_output(1) ? SetMask(n, outputs[1]) : OkStatus();
}

// In inference a dropout returns its input; the mask says that nothing was dropped.
Status LiftDropout(NodeLift& n) {
  if (n.for_training() && !IsZero(n.constant(1))) return LiftTrainingDropout(n, 0);
  MSRT_ASSIGN_OR_RETURN(const bool training, IsTraining(n));
  if (training) return LiftTrainingDropout(n, 1);
  MSRT_ASSIGN_OR_RETURN(const ValueId out, n.Add("Identity", {n.input(0)}));
  n.SetOutput(0, out);
  if (!n.wants_output(1)) return OkStatus();
  MSRT_ASSIGN_OR_RETURN(const ValueId shape, n.Add("Shape", {n.input(0)}));
  const uint8_t one = 1;
  MSRT_ASSIGN_OR_RETURN(const ValueId mask,
                        n.Add("ConstantOfShape", {shape},
                              {{"value", ConstTensor::Of<uint8_t>(DType::kBool, {1}, {&one, 1})}}));
  return SetMask(n, mask);
}

// A parameter for each element of a sample (spatial = 0, which opset 9 dropped) becomes a parameter
// for each channel of the flattened sample.
Status LiftNonSpatialBatch(NodeLift& n) {
  const std::vector<int64_t> flat = {-1};
  MSRT_ASSIGN_OR_RETURN(const ValueId x, n.Add("Flatten", {n.input(0)}, {{"axis", int64_t{1}}}));
  std::vector<ValueId> inputs = {x};
  for (size_t i = 1; i < 5; ++i) {
    MSRT_ASSIGN_OR_RETURN(const ValueId p, n.Add("Reshape", {n.input(i)}, {{"shape", flat}}));
    inputs.push_back(p);
  }
  MSRT_ASSIGN_OR_RETURN(const ValueId y, n.Add("BatchNormalization", inputs,
                                               {{"epsilon", n.Float("epsilon", 1e-5f)}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId shape, n.Add("Shape", {n.input(0)}));
  MSRT_ASSIGN_OR_RETURN(const ValueId out, n.Add("Reshape", {y, shape}));
  n.SetOutput(0, out);
  return OkStatus();
}

// running = old * momentum + current * (1 - momentum), in the type of `old`.
Result<ValueId> RunningStatistic(NodeLift& n, ValueId old, ValueId current, DType dtype) {
  const double momentum = n.Float("momentum", 0.9f);
  const DType out = n.type_of(old).dtype;
  MSRT_ASSIGN_OR_RETURN(const ValueId wide, n.Add("Cast", {old}, {{"to", dtype}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId kept, n.Add("Mul", {wide, n.Scalar(dtype, momentum)}));
  MSRT_ASSIGN_OR_RETURN(const ValueId added,
                        n.Add("Mul", {current, n.Scalar(dtype, 1 - momentum)}));
  MSRT_ASSIGN_OR_RETURN(const ValueId sum, n.Add("Add", {kept, added}));
  return n.Add("Cast", {sum}, {{"to", out}});
}

// Normalizes with the statistics of the batch itself, whose parameters and statistics are at least
// f32.
Status LiftTrainingBatch(NodeLift& n) {
  const Type& type = n.type(0);
  if (!type.rank_known) return Unsupported("training_mode = 1 needs the rank of the input");
  const bool one_channel = type.rank() == 1;
  const DType dtype = type.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  ValueId x = n.input(0);
  if (one_channel) {
    MSRT_ASSIGN_OR_RETURN(x, n.Add("Reshape", {x}, {{"shape", std::vector<int64_t>{-1, 1}}}));
  }
  MSRT_ASSIGN_OR_RETURN(const ValueId scale, n.Add("Cast", {n.input(1)}, {{"to", dtype}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId bias, n.Add("Cast", {n.input(2)}, {{"to", dtype}}));
  MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> results,
                        n.AddMany("msrt", "BatchNormTraining", {x, scale, bias},
                                  {{"epsilon", n.Float("epsilon", 1e-5f)}}, 3));
  ValueId y = results[0];
  if (one_channel) {
    MSRT_ASSIGN_OR_RETURN(y, n.Add("Reshape", {y}, {{"shape", std::vector<int64_t>{-1}}}));
  }
  n.SetOutput(0, y);
  for (size_t i : {1, 2}) {
    if (!n.wants_output(i)) continue;
    MSRT_ASSIGN_OR_RETURN(const ValueId running,
                          RunningStatistic(n, n.input(2 + i), results[i], dtype));
    n.SetOutput(i, running);
  }
  return OkStatus();
}

// The form for inference. A trainer computes the statistics itself.
Status LiftBatchForTraining(NodeLift& n) {
  MSRT_ASSIGN_OR_RETURN(const ValueId y, n.Add("BatchNormalization", n.inputs(),
                                               {{"epsilon", n.Float("epsilon", 1e-5f)},
                                                {"momentum", n.Float("momentum", 0.9f)}}));
  n.SetOutput(0, y);
  for (size_t i : {1, 2}) {
    if (n.wants_output(i)) n.SetOutput(i, n.input(2 + i));
  }
  return OkStatus();
}

Status LiftBatchNormalization(NodeLift& n) {
  for (size_t i = 0; i < 5; ++i) {
    if (!n.has_input(i)) return InvalidModel("input ", i, " is missing");
  }
  if (n.for_training() && n.Int("spatial", 1) != 0) return LiftBatchForTraining(n);
  if (n.opset() >= 14) {
    if (n.Int("training_mode", 0) != 0) return LiftTrainingBatch(n);
    n.attrs().Remove("training_mode");
    return n.Pass();
  }
  // The other outputs exist only in training; a network for inference may name them if they are not
  // used.
  const bool inference = n.opset() < 7 && n.Int("is_test", 0) != 0;
  for (size_t i = 1; i < n.output_count() && !inference; ++i) {
    if (n.wants_output(i))
      return Unsupported(
          "the outputs of training before opset 14 are not supported; export for inference");
  }
  if (n.Int("spatial", 1) == 0) return LiftNonSpatialBatch(n);
  MSRT_ASSIGN_OR_RETURN(const ValueId y, n.Add("BatchNormalization", n.inputs(),
                                               {{"epsilon", n.Float("epsilon", 1e-5f)}}));
  n.SetOutput(0, y);
  return OkStatus();
}

constexpr LiftRule kNormalizationLifts[] = {
    {"", "Softmax", LiftSoftmaxLike},
    {"", "LogSoftmax", LiftSoftmaxLike},
    {"", "Hardmax", LiftSoftmaxLike},
    {"", "Dropout", LiftDropout},
    {"", "BatchNormalization", LiftBatchNormalization},
};

}  // namespace

std::span<const LiftRule> NormalizationLifts() { return kNormalizationLifts; }

}  // namespace msrt::onnx_import
