// Rules for features of opsets before 7: broadcasting by attributes, lists in attributes, memory
// hints that are obsolete.
#include "tools/msconvert/onnx/lift.h"

namespace msrt::onnx_import {
namespace {

// "broadcast" and "axis" used to say which dims the second operand has; today they are the last
// ones.
Status AlignSecondOperand(NodeLift& n) {
  const bool broadcast = n.Int("broadcast", 0) != 0;
  const int64_t axis = n.Int("axis", INT64_MIN);
  for (const char* attr : {"broadcast", "axis", "consumed_inputs"}) n.attrs().Remove(attr);
  if (!broadcast || axis == INT64_MIN) return OkStatus();
  const Type &a = n.type(0), &b = n.type(1);
  if (!a.rank_known || !b.rank_known)
    return Unsupported("broadcasting along an axis (before opset 7) needs known ranks");
  const int64_t at = axis < 0 ? axis + a.rank() : axis;
  if (at < 0 || at > a.rank() - b.rank())
    return InvalidModel("axis = ", axis, " does not fit operands of rank ", a.rank(), " and ",
                        b.rank());
  std::vector<int64_t> added;
  for (int64_t d = at + b.rank(); d < a.rank(); ++d) added.push_back(d - at);
  if (added.empty()) return OkStatus();
  MSRT_ASSIGN_OR_RETURN(const ValueId aligned, n.Add("Unsqueeze", {n.input(1)}, {{"axes", added}}));
  n.SetInput(1, aligned);
  return OkStatus();
}

Status LiftBroadcasting(NodeLift& n) {
  if (n.opset() < 7 && n.has_input(1)) MSRT_RETURN_IF_ERROR(AlignSecondOperand(n));
  return n.Pass();
}

// Drops the memory hints of opset 1.
Status LiftHinted(NodeLift& n) {
  if (n.opset() < 6) n.attrs().Remove("consumed_inputs");
  return n.Pass();
}

// A list of slopes used to be per channel; today it broadcasts like every operand.
Status LiftPRelu(NodeLift& n) {
  n.attrs().Remove("consumed_inputs");
  if (n.opset() >= 7 || !n.has_input(1)) return n.Pass();
  const Type &x = n.type(0), &slope = n.type(1);
  if (!x.rank_known || !slope.concrete())
    return Unsupported("a slope for each channel (before opset 7) needs known shapes");
  if (slope.elements() == 1 || slope.rank() != 1 || x.rank() <= 2) return n.Pass();
  std::vector<int64_t> added;
  for (int d = 2; d < x.rank(); ++d) added.push_back(d - 1);
  MSRT_ASSIGN_OR_RETURN(const ValueId aligned, n.Add("Unsqueeze", {n.input(1)}, {{"axes", added}}));
  n.SetInput(1, aligned);
  return n.Pass();
}

Status LiftGemm(NodeLift& n) {
  if (n.opset() < 7) n.attrs().Remove("broadcast");
  return n.Pass();
}

Status LiftConcat(NodeLift& n) {
  if (n.opset() < 4 && !n.Has("axis")) n.attrs().Set("axis", int64_t{1});
  return n.Pass();
}

// Pads and the value to pad with were attributes before opset 11.
Status LiftPad(NodeLift& n) {
  if (n.opset() >= 11) return n.Pass();
  if (n.Has("paddings")) {
    n.attrs().Set("pads", n.Ints("paddings"));
    n.attrs().Remove("paddings");
  }
  const double value = n.Float("value", 0);
  n.attrs().Remove("value");
  if (value != 0) n.SetInput(2, n.Scalar(n.type(0).dtype, value));
  return n.Pass();
}

constexpr LiftRule kLegacyLifts[] = {
    {"", "Add", LiftBroadcasting},
    {"", "Sub", LiftBroadcasting},
    {"", "Mul", LiftBroadcasting},
    {"", "Div", LiftBroadcasting},
    {"", "Pow", LiftBroadcasting},
    {"", "And", LiftBroadcasting},
    {"", "Or", LiftBroadcasting},
    {"", "Xor", LiftBroadcasting},
    {"", "Equal", LiftBroadcasting},
    {"", "Greater", LiftBroadcasting},
    {"", "Less", LiftBroadcasting},
    {"", "PRelu", LiftPRelu},
    {"", "Gemm", LiftGemm},
    {"", "Concat", LiftConcat},
    {"", "Pad", LiftPad},
    {"", "Abs", LiftHinted},
    {"", "Ceil", LiftHinted},
    {"", "Elu", LiftHinted},
    {"", "Exp", LiftHinted},
    {"", "Floor", LiftHinted},
    {"", "HardSigmoid", LiftHinted},
    {"", "InstanceNormalization", LiftHinted},
    {"", "LeakyRelu", LiftHinted},
    {"", "Log", LiftHinted},
    {"", "Max", LiftHinted},
    {"", "Mean", LiftHinted},
    {"", "Min", LiftHinted},
    {"", "Neg", LiftHinted},
    {"", "Reciprocal", LiftHinted},
    {"", "Relu", LiftHinted},
    {"", "Selu", LiftHinted},
    {"", "Sigmoid", LiftHinted},
    {"", "Sqrt", LiftHinted},
    {"", "Sum", LiftHinted},
    {"", "Tanh", LiftHinted},
};

}  // namespace

std::span<const LiftRule> LegacyLifts() { return kLegacyLifts; }

}  // namespace msrt::onnx_import
