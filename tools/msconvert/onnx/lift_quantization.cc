// Rules for the quantised ops of ONNX Runtime: what has no op here becomes the plain op between a dequantisation and a quantisation.
#include "tools/msconvert/onnx/lift.h"

namespace msrt::onnx_import {
namespace {

constexpr std::string_view kDomain = "com.microsoft";

// A quantised tensor is three inputs: data, scale and zero point, which may be left out.
Result<ValueId> Dequantized(NodeLift& n, size_t first) {
  if (!n.has_input(first) || !n.has_input(first + 1)) return InvalidModel("inputs ", first, " and ", first + 1, " must be given");
  return n.Add("DequantizeLinear", {n.input(first), n.input(first + 1), n.input(first + 2)});
}

// Output 0: `real` with the scale and zero point of inputs `first` and the next. `dtype` is for a zero point that is left out.
Status SetQuantized(NodeLift& n, ValueId real, size_t first, DType dtype) {
  if (!n.has_input(first)) return InvalidModel("input ", first, ", the scale of the output, is missing");
  AttrList attrs;
  if (!n.has_input(first + 1)) attrs.Set("output_dtype", dtype);
  MSRT_ASSIGN_OR_RETURN(const ValueId out, n.Add("QuantizeLinear", {real, n.input(first), n.input(first + 1)}, std::move(attrs)));
  n.SetOutput(0, out);
  return OkStatus();
}

Status LiftBinary(NodeLift& n, std::string_view op) {
  MSRT_ASSIGN_OR_RETURN(const ValueId a, Dequantized(n, 0));
  MSRT_ASSIGN_OR_RETURN(const ValueId b, Dequantized(n, 3));
  MSRT_ASSIGN_OR_RETURN(const ValueId c, n.Add(op, {a, b}));
  return SetQuantized(n, c, 6, n.type(0).dtype);
}

Status LiftAdd(NodeLift& n) { return LiftBinary(n, "Add"); }
Status LiftMul(NodeLift& n) { return LiftBinary(n, "Mul"); }

Status LiftUnary(NodeLift& n, std::string_view op, AttrList attrs) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, Dequantized(n, 0));
  MSRT_ASSIGN_OR_RETURN(const ValueId y, n.Add(op, {x}, std::move(attrs)));
  return SetQuantized(n, y, 3, n.type(0).dtype);
}

Status LiftSigmoid(NodeLift& n) { return LiftUnary(n, "Sigmoid", {}); }
Status LiftLeakyRelu(NodeLift& n) { return LiftUnary(n, "LeakyRelu", {{"alpha", n.Float("alpha", 0.01f)}}); }

Status RefuseChannelsLast(NodeLift& n) {
  if (n.Int("channels_last", 0) != 0) return Unsupported("channels_last = 1; export with channels first");
  n.attrs().Remove("channels_last");
  return OkStatus();
}

Status LiftAveragePool(NodeLift& n) {
  MSRT_RETURN_IF_ERROR(RefuseChannelsLast(n));
  return LiftUnary(n, "AveragePool", n.attrs());
}
Status LiftGlobalAveragePool(NodeLift& n) {
  MSRT_RETURN_IF_ERROR(RefuseChannelsLast(n));
  return LiftUnary(n, "GlobalAveragePool", {});
}

// The scale and zero point of the output come first.
Status LiftConcat(NodeLift& n) {
  std::vector<ValueId> parts;
  for (size_t i = 2; i < n.input_count(); i += 3) {
    MSRT_ASSIGN_OR_RETURN(const ValueId part, Dequantized(n, i));
    parts.push_back(part);
  }
  if (parts.empty()) return InvalidModel("there is nothing to join");
  MSRT_ASSIGN_OR_RETURN(const ValueId all, n.Add("Concat", parts, n.attrs()));
  return SetQuantized(n, all, 0, n.type(2).dtype);
}

// They differ from the standard ones in admitting types that those admit by now.
Status LiftQuantize(NodeLift& n) { return n.PassAs("QuantizeLinear"); }
Status LiftDequantize(NodeLift& n) { return n.PassAs("DequantizeLinear"); }

constexpr LiftRule kRules[] = {
    {kDomain, "QLinearAdd", LiftAdd},
    {kDomain, "QLinearMul", LiftMul},
    {kDomain, "QLinearSigmoid", LiftSigmoid},
    {kDomain, "QLinearLeakyRelu", LiftLeakyRelu},
    {kDomain, "QLinearAveragePool", LiftAveragePool},
    {kDomain, "QLinearGlobalAveragePool", LiftGlobalAveragePool},
    {kDomain, "QLinearConcat", LiftConcat},
    {kDomain, "QuantizeLinear", LiftQuantize},
    {kDomain, "DequantizeLinear", LiftDequantize},
};

}  // namespace

std::span<const LiftRule> QuantizationLifts() { return kRules; }

}  // namespace msrt::onnx_import
