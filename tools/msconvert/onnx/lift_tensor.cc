// Rules for ops that move elements and changed between opsets in what they take.
#include "tools/msconvert/onnx/lift.h"

namespace msrt::onnx_import {
namespace {

// Before opset 18 a split without sizes was one into equal parts, as many as the node has outputs.
Status LiftSplit(NodeLift& n) {
  if (n.opset() < 18 && !n.Has("split") && !n.has_input(1)) n.attrs().Set("num_outputs", static_cast<int64_t>(n.output_count()));
  return n.Pass();
}

// ONNX allows a depth of any number type.
Status LiftOneHot(NodeLift& n) {
  if (n.has_input(1) && !kIndexTypes.Has(n.type(1).dtype)) {
    MSRT_ASSIGN_OR_RETURN(const ValueId depth, n.Add("Cast", {n.input(1)}, {{"to", DType::kI64}}));
    n.SetInput(1, depth);
  }
  return n.Pass();
}

Status LiftScatter(NodeLift& n) { return n.PassAs("ScatterElements"); }

constexpr LiftRule kRules[] = {
    {"", "Split", LiftSplit},
    {"", "OneHot", LiftOneHot},
    {"", "Scatter", LiftScatter},
};

}  // namespace

std::span<const LiftRule> TensorLifts() { return kRules; }

}  // namespace msrt::onnx_import
