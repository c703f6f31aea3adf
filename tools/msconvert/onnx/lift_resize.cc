// Rules for Resize and for Upsample, which it replaced.
#include <algorithm>

#include "tools/msconvert/onnx/lift.h"

namespace msrt::onnx_import {
namespace {

constexpr size_t kRoiInput = 1, kScalesInput = 2, kSizesInput = 3;

// Adds a Resize of opset 23 with the geometry of opset 10: coordinates are indices divided by the
// scale.
Result<ValueId> Asymmetric(NodeLift& n, ValueId x, ValueId scales, const std::string& mode,
                           const std::string& nearest) {
  AttrList attrs = {{"mode", mode},
                    {"coordinate_transformation_mode", std::string("asymmetric")},
                    {"nearest_mode", nearest}};
  const ConstTensor* known = n.constant_of(scales);
  if (known == nullptr) return n.Add("Resize", {x, kNoValue, scales}, std::move(attrs));
  const auto values = known->As<float>();
  attrs.Set("scales", std::vector<double>(values.begin(), values.end()));
  return n.Add("Resize", {x}, std::move(attrs));
}

// Opset 10 did not define coordinates. Exporters followed ONNX's tests of the time: the nearest
// element is the one before along an axis that grows and the one after along an axis that shrinks.
// Axes of both kinds take two steps.
Result<ValueId> FirstResize(NodeLift& n, ValueId scales) {
  const std::string mode = n.String("mode", "nearest");
  if (mode != "nearest") return Asymmetric(n, n.input(0), scales, mode, "floor");
  const ConstTensor* known = n.constant_of(scales);
  if (known == nullptr) return Unsupported("mode 'nearest' before opset 11 needs constant scales");
  std::vector<float> up, down;
  for (float s : known->As<float>()) {
    up.push_back(s > 1 ? s : 1);
    down.push_back(s < 1 ? s : 1);
  }
  const auto changes = [](const std::vector<float>& list) {
    return std::any_of(list.begin(), list.end(), [](float s) { return s != 1; });
  };
  ValueId out = n.input(0);
  const Dims dims = known->dims;
  if (changes(down)) {
    MSRT_ASSIGN_OR_RETURN(
        out, Asymmetric(n, out, n.Constant(ConstTensor::Floats(dims, down)), mode, "ceil"));
  }
  if (changes(up) || !changes(down)) {
    MSRT_ASSIGN_OR_RETURN(
        out, Asymmetric(n, out, n.Constant(ConstTensor::Floats(dims, up)), mode, "floor"));
  }
  return out;
}

Status LiftResize(NodeLift& n) {
  if (n.opset() < 11) {
    if (!n.has_input(1) || n.type(1).dtype != DType::kF32)
      return InvalidModel("input 1, the scales, must be a list of f32");
    MSRT_ASSIGN_OR_RETURN(const ValueId out, FirstResize(n, n.input(1)));
    n.SetOutput(0, out);
    return OkStatus();
  }
  // An empty list means an omitted one.
  for (size_t i : {kRoiInput, kScalesInput, kSizesInput}) {
    const ConstTensor* list = n.constant(i);
    if (list != nullptr && list->dims.elements() == 0) n.SetInput(i, kNoValue);
  }
  return n.Pass();
}

// Scales were attributes before opset 9. They never shrink, so the nearest element is always the
// one before.
Status LiftUpsample(NodeLift& n) {
  ValueId scales = n.input(1);
  if (n.opset() < 9) {
    const std::vector<double> given =
        n.opset() < 7
            ? std::vector<double>{1, 1, n.Float("height_scale", 1), n.Float("width_scale", 1)}
            : n.Floats("scales");
    const std::vector<float> narrow(given.begin(), given.end());
    scales = n.Constant(ConstTensor::Floats({static_cast<int64_t>(narrow.size())}, narrow));
  }
  if (scales == kNoValue || n.type_of(scales).dtype != DType::kF32)
    return InvalidModel("the scales must be a list of f32");
  MSRT_ASSIGN_OR_RETURN(const ValueId out,
                        Asymmetric(n, n.input(0), scales, n.String("mode", "nearest"), "floor"));
  n.SetOutput(0, out);
  return OkStatus();
}

constexpr LiftRule kResizeLifts[] = {{"", "Resize", LiftResize}, {"", "Upsample", LiftUpsample}};

}  // namespace

std::span<const LiftRule> ResizeLifts() { return kResizeLifts; }

}  // namespace msrt::onnx_import
