// Rules for ops that work element by element, and for constants.
#include "tools/msconvert/onnx/lift.h"

namespace msrt::onnx_import {
namespace {

// A constant has its value in one of several attributes.
Status LiftConstant(NodeLift& n) {
  for (const Attr& attr : n.attrs()) {
    if (const auto* tensor = std::get_if<ConstTensor>(&attr.value))
      n.SetOutput(0, n.Constant(*tensor));
    else if (const auto* f = std::get_if<double>(&attr.value))
      n.SetOutput(0, n.Scalar(DType::kF32, *f));
    else if (const auto* i = std::get_if<int64_t>(&attr.value))
      n.SetOutput(0, n.Constant(ConstTensor::Of<int64_t>(DType::kI64, {}, {i, 1})));
    else if (const auto* ints = std::get_if<std::vector<int64_t>>(&attr.value))
      n.SetOutput(0, n.Constant(ConstTensor::Int64s(*ints)));
    else if (const auto* floats = std::get_if<std::vector<double>>(&attr.value)) {
      const std::vector<float> narrow(floats->begin(), floats->end());
      n.SetOutput(0,
                  n.Constant(ConstTensor::Floats({static_cast<int64_t>(narrow.size())}, narrow)));
    } else {
      return Unsupported("attribute '", attr.name, "' (text) is not supported");
    }
  }
  return n.outputs()[0] == kNoValue ? InvalidModel("a constant without a value") : OkStatus();
}

Status LiftCastLike(NodeLift& n) {
  if (!n.has_input(1)) return InvalidModel("input 1, whose type is meant, is missing");
  const DType to = n.type(1).dtype;
  n.attrs().Set("to", to);
  n.DropInputs(1);
  return n.PassAs("Cast");
}

// Before opset 11 the bounds were attributes with the extremes of f32 as defaults.
Status LiftClip(NodeLift& n) {
  if (n.opset() >= 11) return n.Pass();
  const DType dtype = n.type(0).dtype;
  const ValueId low = n.Has("min") ? n.Scalar(dtype, n.Float("min", 0)) : kNoValue;
  const ValueId high = n.Has("max") ? n.Scalar(dtype, n.Float("max", 0)) : kNoValue;
  MSRT_ASSIGN_OR_RETURN(const ValueId out, n.Add("Clip", {n.input(0), low, high}));
  n.SetOutput(0, out);
  return OkStatus();
}

constexpr LiftRule kElementwiseLifts[] = {
    {"", "Constant", LiftConstant},
    {"", "CastLike", LiftCastLike},
    {"", "Clip", LiftClip},
};

}  // namespace

std::span<const LiftRule> ElementwiseLifts() { return kElementwiseLifts; }

}  // namespace msrt::onnx_import
