// Convolutions, pools and normalisations over images.
#include <cmath>

#include "tools/msconvert/mindir/import_rule.h"

namespace msrt::mindir_import {
namespace {

constexpr std::string_view kFormats[] = {"NCHW", "NHWC"};
constexpr std::string_view kPadModes[] = {"PAD", "SAME", "VALID", "FULL"};

Status RequireChannelsFirst(PrimitiveCall& call) {
  for (std::string_view argument : {"format", "data_format"}) {
    MSRT_ASSIGN_OR_RETURN(const std::string format, call.Choice(argument, kFormats, "NCHW"));
    if (format != "NCHW" && format != "NCDHW" && format != "DEFAULTFORMAT") {
      return Unsupported("argument '", argument, "' = ", format, " is not supported, only NCHW is");
    }
  }
  return OkStatus();
}

// Returns numbers for `space` axes, from one number for all, one for each, or one for each axis of
// the tensor.
Result<std::vector<int64_t>> OfSpace(PrimitiveCall& call, std::string_view argument, size_t space,
                                     std::vector<int64_t> fallback) {
  if (!call.Has(argument)) return fallback;
  MSRT_ASSIGN_OR_RETURN(std::vector<int64_t> values, call.Ints(argument));
  if (values.size() == 1) return std::vector<int64_t>(space, values[0]);
  if (values.size() == space + 2) values.erase(values.begin(), values.begin() + 2);
  if (values.size() != space)
    return Unsupported("argument '", argument, "' has ", values.size(), " numbers, ", space,
                       " are expected");
  return values;
}

// Returns "top, bottom, left, right" as begins and ends.
Result<std::vector<int64_t>> PadsOf(PrimitiveCall& call, size_t space) {
  const std::string_view argument = call.Has("pad_list") ? "pad_list" : "pad";
  std::vector<int64_t> pads(2 * space);
  if (!call.Has(argument)) return pads;
  MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> values, call.Ints(argument));
  if (values.size() == 1) return std::vector<int64_t>(2 * space, values[0]);
  if (values.size() != 2 * space)
    return Unsupported("argument '", argument, "' has ", values.size(), " numbers");
  for (size_t i = 0; i < space; ++i) {
    pads[i] = values[2 * i];
    pads[space + i] = values[2 * i + 1];
  }
  return pads;
}

Status SetPadding(PrimitiveCall& call, size_t space, AttrList* attrs) {
  MSRT_ASSIGN_OR_RETURN(const std::string mode, call.Choice("pad_mode", kPadModes, "VALID"));
  if (mode == "SAME") attrs->Set("auto_pad", std::string("SAME_UPPER"));
  else if (mode == "PAD") {
    MSRT_ASSIGN_OR_RETURN(std::vector<int64_t> pads, PadsOf(call, space));
    attrs->Set("pads", std::move(pads));
  } else if (mode != "VALID")
    return Unsupported("argument 'pad_mode' = ", mode, " is not supported");
  return OkStatus();
}

Result<size_t> SpaceOf(PrimitiveCall& call, ValueId x) {
  MSRT_ASSIGN_OR_RETURN(const int rank, call.Rank(x));
  if (rank < 3) return InvalidModel("has an input of rank ", rank);
  return static_cast<size_t>(rank - 2);
}

Status Conv(PrimitiveCall& call) {
  MSRT_RETURN_IF_ERROR(RequireChannelsFirst(call));
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("x"));
  MSRT_ASSIGN_OR_RETURN(const ValueId w, call.Tensor("w"));
  MSRT_ASSIGN_OR_RETURN(const size_t space, SpaceOf(call, x));
  AttrList attrs;
  MSRT_RETURN_IF_ERROR(SetPadding(call, space, &attrs));
  const std::vector<int64_t> ones(space, 1);
  MSRT_ASSIGN_OR_RETURN(std::vector<int64_t> strides,
                        OfSpace(call, call.Has("stride") ? "stride" : "strides", space, ones));
  MSRT_ASSIGN_OR_RETURN(
      std::vector<int64_t> dilations,
      OfSpace(call, call.Has("dilation") ? "dilation" : "dilations", space, ones));
  MSRT_ASSIGN_OR_RETURN(const int64_t group, call.Int(call.Has("group") ? "group" : "groups", 1));
  attrs.Set("strides", std::move(strides));
  attrs.Set("dilations", std::move(dilations));
  attrs.Set("group", group);
  return call.SetResult(call.Add("Conv", {x, w}, std::move(attrs)));
}

// The form with torch's arguments: padding on both sides alike.
Status ConvExt(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const ValueId w, call.Tensor("weight"));
  MSRT_ASSIGN_OR_RETURN(const ValueId bias, call.TensorOrNone("bias"));
  MSRT_ASSIGN_OR_RETURN(const size_t space, SpaceOf(call, x));
  const std::vector<int64_t> ones(space, 1), zeros(space, 0);
  MSRT_ASSIGN_OR_RETURN(std::vector<int64_t> strides, OfSpace(call, "stride", space, ones));
  MSRT_ASSIGN_OR_RETURN(std::vector<int64_t> pads, OfSpace(call, "padding", space, zeros));
  MSRT_ASSIGN_OR_RETURN(std::vector<int64_t> dilations, OfSpace(call, "dilation", space, ones));
  MSRT_ASSIGN_OR_RETURN(const int64_t group, call.Int("groups", 1));
  pads.insert(pads.end(), pads.begin(), pads.begin() + static_cast<ptrdiff_t>(space));
  return call.SetResult(call.Add("Conv", {x, w, bias},
                                 {{"strides", std::move(strides)},
                                  {"pads", std::move(pads)},
                                  {"dilations", std::move(dilations)},
                                  {"group", group}}));
}

Status ConvTranspose(PrimitiveCall& call) {
  MSRT_RETURN_IF_ERROR(RequireChannelsFirst(call));
  MSRT_ASSIGN_OR_RETURN(const ValueId dy, call.Tensor("out_backprop"));
  MSRT_ASSIGN_OR_RETURN(const ValueId w, call.Tensor("filter"));
  MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, call.Ints("input_sizes"));
  MSRT_ASSIGN_OR_RETURN(const size_t space, SpaceOf(call, dy));
  const std::vector<int64_t> ones(space, 1);
  MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> strides,
                        OfSpace(call, call.Has("stride") ? "stride" : "strides", space, ones));
  MSRT_ASSIGN_OR_RETURN(
      const std::vector<int64_t> dilations,
      OfSpace(call, call.Has("dilation") ? "dilation" : "dilations", space, ones));
  MSRT_ASSIGN_OR_RETURN(const int64_t group, call.Int(call.Has("group") ? "group" : "groups", 1));
  MSRT_ASSIGN_OR_RETURN(const std::string mode, call.Choice("pad_mode", kPadModes, "VALID"));
  if (sizes.size() != space + 2)
    return Unsupported("argument 'input_sizes' must have one number for each dim");
  AttrList attrs{{"strides", strides}, {"dilations", dilations}, {"group", group}};
  std::vector<int64_t> pads(2 * space), extra(space);
  if (mode == "PAD") {
    MSRT_ASSIGN_OR_RETURN(pads, PadsOf(call, space));
  }
  for (size_t i = 0; i < space; ++i) {
    MSRT_ASSIGN_OR_RETURN(const int64_t in, call.KnownDim(dy, static_cast<int>(i) + 2));
    MSRT_ASSIGN_OR_RETURN(const int64_t kernel, call.KnownDim(w, static_cast<int>(i) + 2));
    constexpr int64_t kMax = int64_t{1} << 30;  // so that nothing below overflows
    for (const int64_t v :
         {in, kernel, strides[i], dilations[i], sizes[i + 2], pads[i], pads[space + i]}) {
      if (v < -kMax || v > kMax) return InvalidModel("a size of ", v, " is out of range");
    }
    const int64_t natural = (in - 1) * strides[i] + dilations[i] * (kernel - 1) + 1;
    if (mode == "SAME") {
      const int64_t cut = std::max<int64_t>(0, natural - sizes[i + 2]);
      pads[i] = cut / 2;
      pads[space + i] = cut - cut / 2;
    }
    extra[i] = sizes[i + 2] - (natural - pads[i] - pads[space + i]);
  }
  attrs.Set("pads", std::move(pads));
  attrs.Set("output_padding", std::move(extra));
  return call.SetResult(call.Add("ConvTranspose", {dy, w}, std::move(attrs)));
}

Status Pool(PrimitiveCall& call) {
  MSRT_RETURN_IF_ERROR(RequireChannelsFirst(call));
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("x"));
  MSRT_ASSIGN_OR_RETURN(const size_t space, SpaceOf(call, x));
  AttrList attrs;
  MSRT_RETURN_IF_ERROR(SetPadding(call, space, &attrs));
  MSRT_ASSIGN_OR_RETURN(std::vector<int64_t> kernel,
                        OfSpace(call, "kernel_size", space, std::vector<int64_t>(space, 1)));
  MSRT_ASSIGN_OR_RETURN(std::vector<int64_t> strides,
                        OfSpace(call, "strides", space, std::vector<int64_t>(space, 1)));
  MSRT_ASSIGN_OR_RETURN(const int64_t ceil, call.Int("ceil_mode", 0));
  attrs.Set("kernel_shape", std::move(kernel));
  attrs.Set("strides", std::move(strides));
  if (ceil != 0) attrs.Set("ceil_mode", ceil);
  if (call.target() == "AveragePool") {
    MSRT_ASSIGN_OR_RETURN(const bool counted, call.Bool("count_include_pad", false));
    MSRT_ASSIGN_OR_RETURN(const int64_t divisor, call.Int("divisor_override", 0));
    if (divisor != 0)
      return Unsupported("argument 'divisor_override' = ", divisor, " is not supported");
    attrs.Set("count_include_pad", int64_t{counted});
  }
  return call.SetResult(call.Add(call.target(), {x}, std::move(attrs)));
}

// Windows of equal size where the output divides the image; one window for an output of one.
Status AdaptivePool(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("x"));
  MSRT_ASSIGN_OR_RETURN(const size_t space, SpaceOf(call, x));
  MSRT_RETURN_IF_ERROR(call.Get("output_size").status());
  MSRT_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, OfSpace(call, "output_size", space, {}));
  std::vector<int64_t> windows;
  bool global = true;
  for (size_t i = 0; i < space; ++i) {
    global &= sizes[i] == 1;
    if (sizes[i] == 1 && !IsKnown(call.type(x).dims[static_cast<int>(i) + 2])) continue;
    MSRT_ASSIGN_OR_RETURN(const int64_t dim, call.KnownDim(x, static_cast<int>(i) + 2));
    if (sizes[i] < 1 || dim % sizes[i] != 0)
      return Unsupported("an output of ", sizes[i], " does not divide an image of ", dim);
    windows.push_back(dim / sizes[i]);
  }
  if (!global && windows.size() != space)
    return Unsupported("needs the size of the image to be known");
  const bool average = call.target() == "AveragePool";
  ValueId pooled;
  if (global) {
    MSRT_ASSIGN_OR_RETURN(pooled, call.Add(average ? "GlobalAveragePool" : "GlobalMaxPool", {x}));
  } else {
    MSRT_ASSIGN_OR_RETURN(
        pooled, call.Add(call.target(), {x}, {{"kernel_shape", windows}, {"strides", windows}}));
  }
  if (!average) return call.SetTupleResult({pooled, kNoValue});  // without the indices
  call.SetResult(pooled);
  return OkStatus();
}

Status BatchNorm(PrimitiveCall& call) {
  MSRT_RETURN_IF_ERROR(RequireChannelsFirst(call));
  MSRT_ASSIGN_OR_RETURN(const bool training, call.Bool("is_training", false));
  if (training && !call.for_training())
    return Unsupported("it computes statistics, as for training");
  std::vector<ValueId> inputs;
  for (std::string_view argument : {"x", "scale", "bias", "mean", "variance"}) {
    MSRT_ASSIGN_OR_RETURN(const ValueId value, call.Tensor(argument));
    inputs.push_back(value);
  }
  MSRT_ASSIGN_OR_RETURN(const double epsilon, call.Float("epsilon", 1e-5));
  const ValueId mean = inputs[3], variance = inputs[4];
  AttrList attrs{{"epsilon", epsilon}};
  if (call.for_training()) {
    // MindSpore's is the part of the batch, ours that of the running statistics.
    MSRT_ASSIGN_OR_RETURN(const double momentum, call.Float("momentum", 0.1));
    attrs.Set("momentum", 1 - momentum);
  }
  MSRT_ASSIGN_OR_RETURN(const ValueId y, call.Add("BatchNormalization", inputs, std::move(attrs)));
  return call.SetTupleResult({y, mean, variance, kNoValue, kNoValue});
}

Status LayerNorm(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input_x"));
  MSRT_ASSIGN_OR_RETURN(ValueId gamma, call.Tensor("gamma"));
  MSRT_ASSIGN_OR_RETURN(ValueId beta, call.Tensor("beta"));
  MSRT_ASSIGN_OR_RETURN(const int rank, call.Rank(x));
  MSRT_ASSIGN_OR_RETURN(const int axis, call.Axis("begin_norm_axis", rank, 1));
  MSRT_ASSIGN_OR_RETURN(const int scaled, call.Axis("begin_params_axis", rank, 1));
  MSRT_ASSIGN_OR_RETURN(const double epsilon, call.Float("epsilon", 1e-7));
  if (scaled != axis)
    return Unsupported("argument 'begin_params_axis' differs from 'begin_norm_axis'");
  MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> y,
                        call.AddMany("", "LayerNormalization", {x, gamma, beta},
                                     {{"axis", int64_t{axis}}, {"epsilon", epsilon}}, 1));
  return call.SetTupleResult({y[0], kNoValue, kNoValue});
}

// The form with torch's arguments. Without weights it neither scales nor shifts.
Status LayerNormExt(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> normalized, call.Ints("normalized_shape"));
  MSRT_ASSIGN_OR_RETURN(ValueId scale, call.TensorOrNone("weight"));
  MSRT_ASSIGN_OR_RETURN(const ValueId bias, call.TensorOrNone("bias"));
  MSRT_ASSIGN_OR_RETURN(const double epsilon, call.Float("eps", 1e-5));
  if (scale == kNoValue) {
    MSRT_ASSIGN_OR_RETURN(
        scale, call.Add("Expand", {call.Number(call.type(x).dtype, 1)}, {{"shape", normalized}}));
  }
  MSRT_ASSIGN_OR_RETURN(
      const ValueId y,
      call.Add("LayerNormalization", {x, scale, bias},
               {{"axis", -static_cast<int64_t>(normalized.size())}, {"epsilon", epsilon}}));
  return call.SetTupleResult({y, kNoValue, kNoValue});
}

Status RmsNorm(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("x"));
  MSRT_ASSIGN_OR_RETURN(const ValueId gamma, call.Tensor("gamma"));
  MSRT_ASSIGN_OR_RETURN(const double epsilon, call.Float("epsilon", 1e-6));
  const int64_t axis = -int64_t{call.type(gamma).rank()};
  MSRT_ASSIGN_OR_RETURN(const ValueId y, call.Add("RMSNormalization", {x, gamma},
                                                  {{"axis", axis}, {"epsilon", epsilon}}));
  return call.SetTupleResult({y, kNoValue});
}

Status GroupNorm(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const ValueId weight, call.Tensor("weight"));
  MSRT_ASSIGN_OR_RETURN(const ValueId bias, call.Tensor("bias"));
  MSRT_ASSIGN_OR_RETURN(const int64_t groups, call.Int("num_groups"));
  MSRT_ASSIGN_OR_RETURN(const double epsilon, call.Float("eps", 1e-5));
  MSRT_ASSIGN_OR_RETURN(const ValueId y, call.Add("GroupNormalization", {x, weight, bias},
                                                  {{"num_groups", groups}, {"epsilon", epsilon}}));
  return call.SetTupleResult({y, kNoValue, kNoValue});
}

// MindSpore sums over a radius and does not divide by the number of channels.
Status LocalResponse(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("x"));
  MSRT_ASSIGN_OR_RETURN(const int64_t radius, call.Int("depth_radius", 5));
  MSRT_ASSIGN_OR_RETURN(const double bias, call.Float("bias", 1));
  MSRT_ASSIGN_OR_RETURN(const double alpha, call.Float("alpha", 1));
  MSRT_ASSIGN_OR_RETURN(const double beta, call.Float("beta", 0.5));
  constexpr int64_t kWidest = 1 << 20;
  if (radius < 0 || radius > kWidest)
    return Unsupported("argument 'depth_radius' = ", radius, " is not supported");
  const int64_t channels = 2 * radius + 1;
  return call.SetResult(call.Add("LRN", {x},
                                 {{"size", channels},
                                  {"bias", bias},
                                  {"alpha", alpha * static_cast<double>(channels)},
                                  {"beta", beta}}));
}

constexpr std::string_view kConvArguments = "x w";

constexpr Rule kConvolutionRules[] = {
    {"Conv2D", kConvArguments, Conv},
    {"Conv3D", kConvArguments, Conv},
    {"Conv2DExt", "input weight bias stride padding dilation groups", ConvExt},
    {"Conv1DExt", "input weight bias stride padding dilation groups", ConvExt},
    {"Conv3DExt", "input weight bias stride padding dilation groups", ConvExt},
    {"Conv2DBackpropInput", "out_backprop filter input_sizes", ConvTranspose},
    {"Conv2DTranspose", "out_backprop filter input_sizes", ConvTranspose},
    {"MaxPool", "x kernel_size strides pad_mode data_format", Pool, "MaxPool"},
    {"AvgPool", "x kernel_size strides pad_mode data_format", Pool, "AveragePool"},
    {"MaxPool3D", "x", Pool, "MaxPool"},
    {"AvgPool3D", "x", Pool, "AveragePool"},
    {"AdaptiveAvgPool2D", "x output_size", AdaptivePool, "AveragePool"},
    {"AdaptiveAvgPool2DExt", "x output_size", AdaptivePool, "AveragePool"},
    {"AdaptiveMaxPool2D", "x output_size", AdaptivePool, "MaxPool"},
    {"BatchNorm", "x scale bias mean variance is_training epsilon momentum data_format", BatchNorm},
    {"BatchNormExt", "x scale bias mean variance is_training momentum epsilon", BatchNorm},
    {"LayerNorm", "input_x gamma beta begin_norm_axis begin_params_axis epsilon", LayerNorm},
    {"LayerNormExt", "input normalized_shape weight bias eps", LayerNormExt},
    {"RmsNorm", "x gamma epsilon", RmsNorm},
    {"LRN", "x", LocalResponse},
    {"GroupNorm", "input num_groups weight bias eps", GroupNorm},
};

}  // namespace

std::span<const Rule> ConvolutionRules() { return kConvolutionRules; }

}  // namespace msrt::mindir_import
