// Rules for ops that move elements and whose inputs changed between opsets.
#include "tools/msconvert/onnx/lift.h"

namespace msrt::onnx_import {
namespace {

// Before opset 18 a split without sizes made equal parts, as many as the node has outputs.
Status LiftSplit(NodeLift& n) {
  if (n.opset() < 18 && !n.Has("split") && !n.has_input(1))
    n.attrs().Set("num_outputs", static_cast<int64_t>(n.output_count()));
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

// Becomes a slice of the middle along each axis, then zeros on both sides. The sizes may be known
// only at run time, so they are computed by ops.
Status LiftCenterCropPad(NodeLift& n) {
  MSRT_RETURN_IF_ERROR(n.RequireInputs(2));
  const Type& x = n.type(0);
  std::vector<int64_t> axes = n.Ints("axes");
  if (!n.Has("axes")) {
    if (!x.rank_known) return Unsupported("without axes the rank of the input must be known");
    for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  }
  const auto scalar = [&](int64_t v) { return n.Scalar(DType::kI64, static_cast<double>(v)); };
  MSRT_ASSIGN_OR_RETURN(const ValueId shape, n.Add("Shape", {n.input(0)}));
  MSRT_ASSIGN_OR_RETURN(const ValueId dims,
                        n.Add("Gather", {shape, n.Constant(ConstTensor::Int64s(axes))}));
  MSRT_ASSIGN_OR_RETURN(const ValueId wanted, n.Add("Cast", {n.input(1)}, {{"to", DType::kI64}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId kept, n.Add("Min", {dims, wanted}));
  // The part cut off or added before the middle is the smaller half.
  const auto half_of_excess = [&](ValueId of) -> Result<ValueId> {
    MSRT_ASSIGN_OR_RETURN(const ValueId excess, n.Add("Sub", {of, kept}));
    return n.Add("Div", {excess, scalar(2)});
  };
  MSRT_ASSIGN_OR_RETURN(const ValueId start, half_of_excess(dims));
  MSRT_ASSIGN_OR_RETURN(const ValueId end, n.Add("Add", {start, kept}));
  MSRT_ASSIGN_OR_RETURN(const ValueId middle,
                        n.Add("Slice", {n.input(0), start, end}, {{"axes", axes}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId before, half_of_excess(wanted));
  MSRT_ASSIGN_OR_RETURN(const ValueId added, n.Add("Sub", {wanted, kept}));
  MSRT_ASSIGN_OR_RETURN(const ValueId after, n.Add("Sub", {added, before}));
  MSRT_ASSIGN_OR_RETURN(const ValueId pads,
                        n.Add("Concat", {before, after}, {{"axis", int64_t{0}}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId out, n.Add("Pad", {middle, pads}, {{"axes", axes}}));
  n.SetOutput(0, out);
  return OkStatus();
}

Status LiftTfIdfVectorizer(NodeLift& n) {
  if (n.Has("pool_strings"))
    return Unsupported(
        "pool_strings: text is not supported; map words to numbers before the model");
  return n.Pass();
}

Status LiftScatter(NodeLift& n) { return n.PassAs("ScatterElements"); }

// Exporters leave out the last dim of a real signal, which is 1.
Status LiftStft(NodeLift& n) {
  if (n.has_input(0) && n.type(0).is_tensor() && n.type(0).rank_known && n.type(0).rank() == 2) {
    MSRT_ASSIGN_OR_RETURN(const ValueId signal,
                          n.Add("Unsqueeze", {n.input(0)}, {{"axes", std::vector<int64_t>{2}}}));
    n.SetInput(0, signal);
  }
  return n.Pass();
}

constexpr LiftRule kTensorLifts[] = {
    {"", "Split", LiftSplit},
    {"", "OneHot", LiftOneHot},
    {"", "Scatter", LiftScatter},
    {"", "STFT", LiftStft},
    {"", "CenterCropPad", LiftCenterCropPad},
    {"", "TfIdfVectorizer", LiftTfIdfVectorizer},
};

}  // namespace

std::span<const LiftRule> TensorLifts() { return kTensorLifts; }

}  // namespace msrt::onnx_import
