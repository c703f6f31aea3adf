// Rules for ops that changed between opsets in what they take and mean: normalisation, pooling, resizing, indexing.
#include "tools/msconvert/onnx/lift.h"

namespace msrt::onnx_import {
namespace {

// Before opset 13 the tensor was taken as a matrix, cut at `axis`.
Status LiftSoftmaxLike(NodeLift& n) {
  if (n.opset() >= 13) return n.Pass();
  const int64_t axis = n.Int("axis", 1);
  const Type& type = n.type(0);
  if (!type.rank_known) return Unsupported("its meaning before opset 13 needs the rank of the input");
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

// In inference a dropout hands its input on; the mask says that nothing was dropped.
Status LiftDropout(NodeLift& n) {
  if (n.opset() < 7 && n.Int("is_test", 0) == 0 && n.Has("is_test")) return Unsupported("is_test = 0: only inference is supported");
  if (n.has_input(2)) {
    const ConstTensor* training = n.constant(2);
    const bool off = training != nullptr && training->bytes.size() == 1 && training->bytes[0] == std::byte{0};
    const ConstTensor* ratio = n.constant(1);
    const bool drops_nothing = ratio != nullptr && ratio->dtype == DType::kF32 && ratio->As<float>()[0] == 0;
    if (!off && !drops_nothing) return Unsupported("training_mode: only inference is supported");
  }
  MSRT_ASSIGN_OR_RETURN(const ValueId out, n.Add("Identity", {n.input(0)}));
  n.SetOutput(0, out);
  if (n.wants_output(1)) {
    MSRT_ASSIGN_OR_RETURN(const ValueId shape, n.Add("Shape", {n.input(0)}));
    const uint8_t one = 1;
    MSRT_ASSIGN_OR_RETURN(const ValueId mask,
                          n.Add("ConstantOfShape", {shape}, {{"value", ConstTensor::Of<uint8_t>(DType::kBool, {1}, {&one, 1})}}));
    n.SetOutput(1, mask);
  }
  return OkStatus();
}

Status LiftScatter(NodeLift& n) { return n.PassAs("ScatterElements"); }

constexpr LiftRule kRules[] = {
    {"", "Softmax", LiftSoftmaxLike}, {"", "LogSoftmax", LiftSoftmaxLike}, {"", "Hardmax", LiftSoftmaxLike},
    {"", "Dropout", LiftDropout},     {"", "Scatter", LiftScatter},
};

}  // namespace

std::span<const LiftRule> TensorLifts() { return kRules; }

}  // namespace msrt::onnx_import
