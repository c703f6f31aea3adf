#include "ops/window.h"

#include <optional>
#include <vector>

namespace msrt {
namespace {

Status CheckCount(const OpView& op, std::string_view attr, size_t count) {
  const size_t given = op.Ints(attr).size();
  if (!op.Has(attr) || given == count) return OkStatus();
  return InvalidModel(attr, " has ", given, " elements, must have ", count, " for ", op.op(),
                      " here");
}

// Ops without the attribute (Col2Im, MaxUnpool) have explicit pads.
std::string_view AutoPadOf(const OpView& op) {
  return op.Has("auto_pad") ? op.String("auto_pad") : "NOTSET";
}

bool IsSame(std::string_view auto_pad) {
  return auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
}

// The odd element of a SAME padding goes to the end for SAME_UPPER, to the beginning otherwise.
void SplitPadding(int64_t total, std::string_view auto_pad, WindowAxis* a) {
  a->pad_begin = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
  a->pad_end = total - a->pad_begin;
}

// Reads everything except sizes: strides, dilations, kernels, explicit pads.
Result<Windows> ReadWindows(const OpView& op, const Dims& input, std::span<const int64_t> kernel) {
  MSRT_RETURN_IF_ERROR(CheckSpatialRank(input));
  Windows w;
  w.rank = input.rank() - 2;
  const auto rank = static_cast<size_t>(w.rank);
  if (kernel.size() != rank) {
    return InvalidModel("the kernel has ", kernel.size(), " spatial axes, must have ", rank,
                        " for an input of shape ", input);
  }
  MSRT_RETURN_IF_ERROR(CheckCount(op, "strides", rank));
  MSRT_RETURN_IF_ERROR(CheckCount(op, "dilations", rank));
  MSRT_RETURN_IF_ERROR(CheckCount(op, "pads", 2 * rank));
  const auto strides = op.Ints("strides"), dilations = op.Ints("dilations"), pads = op.Ints("pads");
  for (size_t i = 0; i < rank; ++i) {
    WindowAxis& a = w.axis[i];
    a.in = input[static_cast<int>(i) + 2];
    a.kernel = kernel[i];
    if (!strides.empty()) a.stride = strides[i];
    if (!dilations.empty()) a.dilation = dilations[i];
    if (!pads.empty()) a.pad_begin = pads[i], a.pad_end = pads[rank + i];
    if (AutoPadOf(op) != "NOTSET" && (a.pad_begin != 0 || a.pad_end != 0)) {
      return InvalidModel("pads = ", pads, " cannot be used together with auto_pad = '",
                          AutoPadOf(op), "'");
    }
    if (!IsKnown(a.kernel)) continue;
    if (a.kernel < 1 || a.kernel > kMaxWindow || a.span() > kMaxWindow) {
      return InvalidModel("a kernel of ", a.kernel, " with dilation ", a.dilation,
                          " on spatial axis ", i, " must span 1 to ", kMaxWindow, " elements");
    }
  }
  return w;
}

// Computes the number of windows for a known input and kernel.
Status CountWindows(bool ceil_mode, int index, WindowAxis* a) {
  const int64_t room = a->in + a->pad_begin + a->pad_end - a->span();
  const bool fits = room >= 0 || (ceil_mode && room > -a->stride);
  if (!fits) {
    // An empty image has an empty result; a kernel larger than the image is an error of the model.
    if (a->in == 0) {
      a->out = 0;
      return OkStatus();
    }
    return InvalidModel("the kernel spans ", a->span(), " elements of spatial axis ", index,
                        ", which has only ", a->in + a->pad_begin + a->pad_end,
                        " with its padding");
  }
  a->out = (ceil_mode ? CeilDiv(room, a->stride) : room / a->stride) + 1;
  if (ceil_mode) a->out = std::min(a->out, CeilDiv(a->in + a->pad_begin, a->stride));
  return OkStatus();
}

void ResolveSame(std::string_view auto_pad, WindowAxis* a) {
  a->out = CeilDiv(a->in, a->stride);
  if (!IsKnown(a->kernel) || a->out == 0) return;
  SplitPadding(std::max<int64_t>((a->out - 1) * a->stride + a->span() - a->in, 0), auto_pad, a);
}

// Computes stride*(in - 1) + output_padding + span, the extent of a transposed window before pads
// crop it.
bool CoveredOutputs(const WindowAxis& a, int64_t output_padding, int64_t* covered) {
  return CheckedMul(a.stride, a.in - 1, covered) &&
         CheckedAdd(*covered, output_padding + a.span(), covered);
}

// Returns the size that output_shape or SAME requires; nullopt if pads decide.
Result<std::optional<int64_t>> RequestedOutputs(const OpView& op, int index, const WindowAxis& a) {
  const auto output_shape = op.Ints("output_shape");
  if (!output_shape.empty()) return std::optional(output_shape[static_cast<size_t>(index)]);
  if (!IsSame(AutoPadOf(op))) return std::optional<int64_t>();
  int64_t out = kUnknownDim;
  if (IsKnown(a.in) && !CheckedMul(a.in, a.stride, &out))
    return InvalidModel("spatial axis ", index, " is too long: ", a.in, " x stride ", a.stride);
  return std::optional(out);
}

Status ResolveTransposed(const OpView& op, int index, int64_t output_padding, WindowAxis* a) {
  if (output_padding >= std::max(a->stride, a->dilation)) {
    return InvalidModel("output_padding[", index, "] = ", output_padding,
                        ", must be less than the stride ", a->stride, " or the dilation ",
                        a->dilation);
  }
  MSRT_ASSIGN_OR_RETURN(const std::optional<int64_t> requested, RequestedOutputs(op, index, *a));
  a->out = requested.value_or(kUnknownDim);
  if (!IsKnown(a->in) || !IsKnown(a->kernel)) return OkStatus();
  if (a->in == 0 && !op.Has("output_shape")) {
    a->out = 0;
    return OkStatus();
  }
  int64_t covered;
  if (!CoveredOutputs(*a, output_padding, &covered)) {
    return InvalidModel("spatial axis ", index, " is too long: ", a->in, " x stride ", a->stride);
  }
  if (!requested) {
    a->out = covered - a->pad_begin - a->pad_end;
    if (a->out >= 0) return OkStatus();
    return InvalidModel("pads ", a->pad_begin, " and ", a->pad_end, " cut more than the ", covered,
                        " outputs of spatial axis ", index);
  }
  // An output larger than what the windows cover gets no contributions at its end.
  SplitPadding(std::max<int64_t>(covered - a->out, 0), AutoPadOf(op), a);
  if (a->pad_begin <= kMaxPad) return OkStatus();
  return InvalidModel("output size ", a->out, " of spatial axis ", index, " cuts off ",
                      covered - a->out, " elements, at most ", kMaxPad, " may go");
}

}  // namespace

Status CheckSpatialRank(const Dims& input) {
  if (input.rank() >= 3 && input.rank() <= 2 + kMaxSpace) return OkStatus();
  return InvalidModel("the input has shape ", input, ", must be batch, channels and 1 to ",
                      kMaxSpace, " spatial axes");
}

Result<Windows> WindowsOf(const OpView& op, const Dims& input, std::span<const int64_t> kernel,
                          bool ceil_mode) {
  MSRT_ASSIGN_OR_RETURN(Windows w, ReadWindows(op, input, kernel));
  const auto auto_pad = AutoPadOf(op);
  for (int i = 0; i < w.rank; ++i) {
    WindowAxis& a = w.axis[static_cast<size_t>(i)];
    if (!IsKnown(a.in)) a.out = kUnknownDim;
    else if (IsSame(auto_pad)) ResolveSame(auto_pad, &a);
    else if (!IsKnown(a.kernel)) a.out = kUnknownDim;
    else MSRT_RETURN_IF_ERROR(CountWindows(ceil_mode && auto_pad == "NOTSET", i, &a));
  }
  return w;
}

Result<Windows> TransposedWindowsOf(const OpView& op, const Dims& input,
                                    std::span<const int64_t> kernel) {
  MSRT_ASSIGN_OR_RETURN(Windows w, ReadWindows(op, input, kernel));
  const auto rank = static_cast<size_t>(w.rank);
  for (std::string_view attr :
       {"output_padding", "output_shape", "piece_offsets", "piece_outputs"}) {
    MSRT_RETURN_IF_ERROR(CheckCount(op, attr, rank));
  }
  if (op.Has("piece_offsets") != op.Has("piece_outputs"))
    return InvalidModel("piece_offsets and piece_outputs must be given together");
  const auto output_padding = op.Ints("output_padding");
  for (size_t i = 0; i < rank; ++i) {
    WindowAxis& a = w.axis[i];
    if (op.Has("piece_offsets")) {
      a.pad_begin = op.Ints("piece_offsets")[i];
      a.pad_end = 0;
      a.out = op.Ints("piece_outputs")[i];
    } else {
      MSRT_RETURN_IF_ERROR(ResolveTransposed(op, static_cast<int>(i),
                                             output_padding.empty() ? 0 : output_padding[i], &a));
    }
  }
  return w;
}

Interval NeedsOf(const WindowAxis& a, Interval out) {
  return WindowNeeds(out, a.stride, a.dilation, a.kernel, a.pad_begin, a.in);
}

Interval TransposedNeedsOf(const WindowAxis& a, Interval out) {
  return TransposedWindowNeeds(out, a.stride, a.dilation, a.kernel, a.pad_begin, a.in);
}

DimMap MapOf(const WindowAxis& a, int space_axis) {
  return DimMap::Window(space_axis, a.stride, a.dilation, a.kernel, a.pad_begin, a.in);
}

DimMap TransposedMapOf(const WindowAxis& a, int space_axis) {
  return DimMap::TransposedWindow(space_axis, a.stride, a.dilation, a.kernel, a.pad_begin, a.in);
}

void LocalizeWindows(const Windows& windows, std::span<const Interval> space, AttrList* attrs) {
  const auto rank = static_cast<size_t>(windows.rank);
  std::vector<int64_t> pads(2 * rank, 0);
  for (size_t i = 0; i < rank; ++i) {
    if (space[i].empty()) continue;
    const WindowAxis& a = windows.axis[i];
    // [begin, end) is the range that the windows read, without the part that overhangs the padded
    // input in ceil mode. The parts below 0 and from `in` on are padding.
    const int64_t begin = a.start(space[i].begin);
    const int64_t end = std::min(a.start(space[i].end - 1) + a.span(), a.in + a.pad_end);
    pads[i] = std::min<int64_t>(end, 0) - std::min<int64_t>(begin, 0);
    pads[rank + i] = std::max(end, a.in) - std::max(begin, a.in);
  }
  attrs->Set("pads", std::move(pads));
  attrs->Remove("auto_pad");
}

void LocalizeTransposedWindows(const Windows& windows, std::span<const Interval> space,
                               AttrList* attrs) {
  const auto rank = static_cast<size_t>(windows.rank);
  std::vector<int64_t> pads(2 * rank), output_padding(rank), offsets(rank), outputs(rank);
  bool plain = true;  // pads and output_padding suffice
  for (size_t i = 0; i < rank; ++i) {
    const WindowAxis& a = windows.axis[i];
    const Interval needs = TransposedNeedsOf(a, space[i]);
    outputs[i] = space[i].size();
    if (needs.empty()) {
      plain = false;
      continue;
    }
    offsets[i] = a.pad_begin + space[i].begin - a.stride * needs.begin;
    const int64_t pad_end = a.stride * (needs.size() - 1) + a.span() - offsets[i] - outputs[i];
    plain = plain && offsets[i] >= 0;
    pads[i] = offsets[i];
    pads[rank + i] = std::max<int64_t>(pad_end, 0);
    output_padding[i] = std::max<int64_t>(-pad_end, 0);
    plain = plain && output_padding[i] < std::max(a.stride, a.dilation);
  }
  for (std::string_view attr :
       {"auto_pad", "pads", "output_padding", "output_shape", "piece_offsets", "piece_outputs"})
    attrs->Remove(attr);
  if (plain) {
    attrs->Set("pads", std::move(pads));
    attrs->Set("output_padding", std::move(output_padding));
  } else {
    attrs->Set("piece_offsets", std::move(offsets));
    attrs->Set("piece_outputs", std::move(outputs));
  }
}

}  // namespace msrt
