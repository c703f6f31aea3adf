// Recurrent layers.
#include "tools/msconvert/mindir/import_rule.h"

namespace msrt::mindir_import {
namespace {

constexpr int64_t kGates = 4, kMaxHidden = 1 << 20;
// MindSpore's gates are input, forget, cell, output; ours are input, output, forget, cell.
constexpr int64_t kOurGates[] = {0, 3, 1, 2};

// Returns elements [begin, begin + 4 * hidden * columns) of the flat weights, with the gates in our
// order, reshaped to dims.
Result<ValueId> Gates(PrimitiveCall& call, ValueId flat, int64_t begin, int64_t hidden,
                      int64_t columns, std::vector<int64_t> dims) {
  const std::vector<int64_t> starts{begin}, ends{begin + kGates * hidden * columns}, axes{0};
  MSRT_ASSIGN_OR_RETURN(
      const ValueId part,
      call.Add("Slice", {flat}, {{"starts", starts}, {"ends", ends}, {"axes", axes}}));
  MSRT_ASSIGN_OR_RETURN(
      const ValueId gates,
      call.Add("Reshape", {part}, {{"shape", std::vector<int64_t>{kGates, hidden * columns}}}));
  const ValueId order = call.IntList({std::begin(kOurGates), std::end(kOurGates)});
  MSRT_ASSIGN_OR_RETURN(const ValueId ours,
                        call.Add("Gather", {gates, order}, {{"axis", int64_t{0}}}));
  return call.Add("Reshape", {ours}, {{"shape", std::move(dims)}});
}

// One layer in one direction; MindSpore splits deeper ones into such layers. The weights are one
// flat tensor.
Status Lstm(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const ValueId h, call.Tensor("h"));
  MSRT_ASSIGN_OR_RETURN(const ValueId c, call.Tensor("c"));
  MSRT_ASSIGN_OR_RETURN(const ValueId w, call.Tensor("w"));
  MSRT_ASSIGN_OR_RETURN(const int64_t hidden, call.Int("hidden_size"));
  MSRT_ASSIGN_OR_RETURN(const int64_t input, call.Int("input_size"));
  MSRT_ASSIGN_OR_RETURN(const int64_t layers, call.Int("num_layers", 1));
  MSRT_ASSIGN_OR_RETURN(const int64_t projection, call.Int("proj_size", 0));
  MSRT_ASSIGN_OR_RETURN(const bool both_ways, call.Bool("bidirectional", false));
  MSRT_ASSIGN_OR_RETURN(const bool has_bias, call.Bool("has_bias", true));
  if (layers != 1 || both_ways || projection != 0)
    return Unsupported("more than one layer or direction, or a projection, in one node");
  if (hidden < 1 || hidden > kMaxHidden || input < 1 || input > kMaxHidden)
    return InvalidModel("hidden_size ", hidden, ", input_size ", input);
  MSRT_ASSIGN_OR_RETURN(const ValueId flat,
                        call.Add("Reshape", {w}, {{"shape", std::vector<int64_t>{-1}}}));
  const int64_t rows = kGates * hidden;
  MSRT_ASSIGN_OR_RETURN(const ValueId weights,
                        Gates(call, flat, 0, hidden, input, {1, rows, input}));
  MSRT_ASSIGN_OR_RETURN(const ValueId recurrent,
                        Gates(call, flat, rows * input, hidden, hidden, {1, rows, hidden}));
  ValueId bias = kNoValue;
  if (has_bias) {  // the sum of both biases; ONNX has one for the input and one for the state
    MSRT_ASSIGN_OR_RETURN(const ValueId sum,
                          Gates(call, flat, rows * (input + hidden), hidden, 1, {1, rows}));
    MSRT_ASSIGN_OR_RETURN(bias,
                          call.Add("Pad", {sum}, {{"pads", std::vector<int64_t>{0, 0, 0, rows}}}));
  }
  MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> y,
                        call.AddMany("", "LSTM", {x, weights, recurrent, bias, kNoValue, h, c},
                                     {{"hidden_size", hidden}}, 3));
  MSRT_ASSIGN_OR_RETURN(const ValueId output,
                        call.Add("Squeeze", {y[0]}, {{"axes", std::vector<int64_t>{1}}}));
  return call.SetTupleResult({output, y[1], y[2], kNoValue, kNoValue});
}

constexpr Rule kRecurrentRules[] = {
    {"LSTM", "input h c w", Lstm},
};

}  // namespace

std::span<const Rule> RecurrentRules() { return kRecurrentRules; }

}  // namespace msrt::mindir_import
