// Fourier transforms: DFT and STFT. The last axis of a tensor has two elements for complex numbers
// and one for real numbers.
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

// Maximum length of a frame or transform; small multiples of it do not overflow.
constexpr int64_t kMaxSamples = int64_t{1} << 48;

Status CheckLength(int64_t length, std::string_view what) {
  if (length >= 1 && length <= kMaxSamples) return OkStatus();
  return InvalidModel(what, " = ", length, ", must be at least 1");
}

// The optional scalar inputs of DFT and STFT: an attribute, an input, or neither.
Result<std::optional<int64_t>> OptionalInt(const OpView& op, std::string_view attr, size_t input,
                                           int64_t absent) {
  if (!op.Has(attr) && !op.has_input(input)) return std::optional(absent);
  return IntAttrOrInput(op, attr, input);
}

Status CheckComplexAxis(const InferContext& c, const Type& x) {
  const bool onesided = c.op().Int("onesided") != 0, inverse = c.op().Int("inverse") != 0;
  const int64_t parts = x.dims.back();
  if (!IsKnown(parts)) return OkStatus();
  if (parts != 1 && parts != 2)
    return InvalidModel("the last dim of input 0, ", x.dims, ", must be 1 (real) or 2 (complex)");
  if (onesided && !inverse && parts == 2) {
    return InvalidModel(
        "input 0 is complex, so both sides of its spectrum differ: onesided must be 0");
  }
  if (onesided && inverse && parts == 1)
    return InvalidModel("input 0 must be complex where onesided and inverse are 1");
  return OkStatus();
}

// ---- DFT ----------------------------------------------------------------------------------------

// Returns the axis that is transformed; nullopt if it is an input of unknown value.
Result<std::optional<int>> TransformedAxis(const OpView& op, int rank) {
  MSRT_ASSIGN_OR_RETURN(const auto given, OptionalInt(op, "axis", 2, -2));
  if (!given) return std::optional<int>();
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(*given, rank));
  if (axis == rank - 1)
    return InvalidModel("axis = ", *given, " is the axis of the real and imaginary parts");
  return std::optional(axis);
}

// Returns the length of the transform along an axis of `extent`; unknown if it depends on unknown
// values.
Result<int64_t> TransformLength(const OpView& op, int64_t extent) {
  MSRT_ASSIGN_OR_RETURN(const auto given, OptionalInt(op, "dft_length", 1, 0));
  if (!given) return kUnknownDim;
  const bool onesided = op.Int("onesided") != 0, inverse = op.Int("inverse") != 0;
  if (op.Has("dft_length") || op.has_input(1)) {
    MSRT_RETURN_IF_ERROR(CheckLength(*given, "dft_length"));
    return *given;
  }
  if (!IsKnown(extent)) return kUnknownDim;
  const int64_t length = onesided && inverse ? 2 * (extent - 1) : extent;
  if (onesided) MSRT_RETURN_IF_ERROR(CheckLength(length, "the length of the transform"));
  return length;
}

Status InferDft(InferContext& c) {
  const Type& x = c.input(0);
  const bool onesided = c.op().Int("onesided") != 0, inverse = c.op().Int("inverse") != 0;
  if (!x.rank_known) {
    c.SetOutput(0, Type::UnrankedTensor(x.dtype));
    return OkStatus();
  }
  if (x.rank() < 2)
    return InvalidModel("input 0 has shape ", x.dims,
                        ", must have a signal axis and one of real and imaginary parts");
  MSRT_RETURN_IF_ERROR(CheckComplexAxis(c, x));
  MSRT_ASSIGN_OR_RETURN(const auto axis, TransformedAxis(c.op(), x.rank()));
  Dims dims = x.dims;
  dims[x.rank() - 1] = onesided && inverse ? 1 : 2;
  if (!axis) {
    for (int i = 0; i < x.rank() - 1; ++i) dims[i] = kUnknownDim;
  } else {
    MSRT_ASSIGN_OR_RETURN(const int64_t length, TransformLength(c.op(), x.dims[*axis]));
    dims[*axis] = !IsKnown(length) ? kUnknownDim : onesided && !inverse ? length / 2 + 1 : length;
  }
  c.SetOutput(0, x.dtype, dims);
  return OkStatus();
}

// Transforms are halved while their length is even, at five operations for each number, and summed
// by definition if it is odd, at eight for each product.
double TransformFlops(double lines, int64_t length) {
  double per_number = 0;
  int64_t odd = length;
  for (; odd > 0 && odd % 2 == 0; odd /= 2) per_number += 5;
  return lines * static_cast<double>(length) * (per_number + 8 * static_cast<double>(odd));
}

Cost CostDft(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  const Dims& x = op.input(0).dims;
  const auto axis = TransformedAxis(op, x.rank());
  if (!axis.ok() || !axis->has_value()) return cost;
  const auto length = TransformLength(op, x[**axis]);
  if (!length.ok() || !IsKnown(*length)) return cost;
  double lines = 1;
  for (int i = 0; i < x.rank() - 1; ++i) lines *= i == **axis ? 1 : static_cast<double>(x[i]);
  cost.flops = TransformFlops(lines, *length);
  return cost;
}

// The axes of the input; the transformed one and the parts of a number stay whole.
Status ResolveDft(const OpView& op, ResolvedSpace* space) {
  const Dims& x = op.input(0).dims;
  const int last = x.rank() - 1;
  MSRT_ASSIGN_OR_RETURN(const auto axis, TransformedAxis(op, x.rank()));
  if (!axis) return Unsupported("cannot be cut before its axis is known");
  ResolveByInput(
      op, [&](int d) { return d == *axis || d == last; }, space);
  TensorMap out = TensorMap::Whole(op.output(0).dims);
  for (int d = 0; d < last; ++d) {
    if (d != *axis) out.dims[static_cast<size_t>(d)] = DimMap::Same(d, x[d]);
  }
  space->outputs[0] = std::move(out);
  return OkStatus();
}

// ---- STFT ---------------------------------------------------------------------------------------

// Returns the length of a frame: explicit, or that of the window, or the whole signal.
Result<int64_t> FrameLength(const OpView& op, int64_t signal) {
  int64_t window = kUnknownDim;
  if (op.has_input(2) && op.input(2).rank_known) window = op.input(2).dims[0];
  MSRT_ASSIGN_OR_RETURN(const auto given,
                        OptionalInt(op, "frame_length", 3, op.has_input(2) ? window : signal));
  if (!given || !IsKnown(*given)) return IsKnown(window) ? window : kUnknownDim;
  MSRT_RETURN_IF_ERROR(CheckLength(*given, "frame_length"));
  if (op.has_input(2))
    MSRT_RETURN_IF_ERROR(SameDim(*given, window, "the lengths of frame and window").status());
  return *given;
}

Status InferStft(InferContext& c) {
  const Type& x = c.input(0);
  MSRT_RETURN_IF_ERROR(CheckRank(c, 0, 3));
  if (c.has_input(2)) MSRT_RETURN_IF_ERROR(CheckRank(c, 2, 1));
  MSRT_ASSIGN_OR_RETURN(const auto step, IntAttrOrInput(c.op(), "frame_step", 1));
  if (step) MSRT_RETURN_IF_ERROR(CheckLength(*step, "frame_step"));
  if (x.rank_known) MSRT_RETURN_IF_ERROR(CheckComplexAxis(c, x));
  const int64_t signal = x.rank_known ? x.dims[1] : kUnknownDim;
  MSRT_ASSIGN_OR_RETURN(const int64_t length, FrameLength(c.op(), signal));
  Dims dims{x.rank_known ? x.dims[0] : kUnknownDim, kUnknownDim, kUnknownDim, 2};
  if (IsKnown(length)) dims[2] = c.op().Int("onesided") != 0 ? length / 2 + 1 : length;
  if (IsKnown(length) && IsKnown(signal)) {
    if (length > signal)
      return InvalidModel("a frame of ", length, " samples is longer than the signal of ", signal);
    if (step) dims[1] = (signal - length) / *step + 1;
  }
  c.SetOutput(0, x.dtype, dims);
  return OkStatus();
}

Cost CostStft(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  const auto length = FrameLength(op, op.input(0).dims[1]);
  const Dims& out = op.output(0).dims;
  if (length.ok() && IsKnown(*length))
    cost.flops = TransformFlops(static_cast<double>(out[0]) * static_cast<double>(out[1]), *length);
  return cost;
}

// Batch and frames; frames overlap.
Status ResolveStft(const OpView& op, ResolvedSpace* space) {
  const Dims &x = op.input(0).dims, &out = op.output(0).dims;
  MSRT_ASSIGN_OR_RETURN(const int64_t length, FrameLength(op, x[1]));
  MSRT_ASSIGN_OR_RETURN(const auto step, IntAttrOrInput(op, "frame_step", 1));
  if (!step || !IsKnown(length))
    return Unsupported("cannot be cut before its frame_step and frame_length are known");
  space->axes.Add(AxisKind::kParallel, out[0]);
  space->axes.Add(AxisKind::kWindow, out[1]);
  space->inputs[0].dims[0] = DimMap::Same(0, x[0]);
  space->inputs[0].dims[1] = DimMap::Window(1, *step, 1, length, 0, x[1]);
  for (int d : {0, 1}) space->outputs[0].dims[static_cast<size_t>(d)] = DimMap::Same(d, out[d]);
  return OkStatus();
}

// ---- entries ------------------------------------------------------------------------------------

constexpr SpaceDef kDftSpace{.resolve = ResolveDft};
constexpr SpaceDef kStftSpace{.resolve = ResolveStft};

constexpr AttrDef kDftAttrs[] = {
    {.name = "inverse", .min_int = 0, .max_int = 1},
    {.name = "onesided", .min_int = 0, .max_int = 1},
    {.name = "axis", .default_int = -2},
    {.name = "dft_length", .min_int = 1, .max_int = kMaxSamples},
};
constexpr AttrDef kStftAttrs[] = {
    {.name = "onesided", .default_int = 1, .min_int = 0, .max_int = 1},
    {.name = "frame_step", .min_int = 1, .max_int = kMaxSamples},
    {.name = "frame_length", .min_int = 1, .max_int = kMaxSamples},
};
constexpr ParamDef kDftInputs[] = {
    {"input", kFloatTypes},
    {"dft_length", kIndexTypes, ParamDef::kOptional},
    {"axis", kIndexTypes, ParamDef::kOptional},
};
constexpr ParamDef kStftInputs[] = {
    {"signal", kFloatTypes, ParamDef::kRequired, 1},
    {"frame_step", kIndexTypes, ParamDef::kOptional},
    {"window", kFloatTypes, ParamDef::kOptional, 1},
    {"frame_length", kIndexTypes, ParamDef::kOptional},
};

constexpr OpDef kSignalOps[] = {
    {.name = "DFT",
     .attrs = kDftAttrs,
     .inputs = kDftInputs,
     .infer = InferDft,
     .grad = GradDft,
     .space = &kDftSpace,
     .cost = CostDft},
    {.name = "STFT",
     .attrs = kStftAttrs,
     .inputs = kStftInputs,
     .infer = InferStft,
     .grad = GradStft,
     .space = &kStftSpace,
     .cost = CostStft},
};

}  // namespace

std::span<const OpDef> SignalOps() { return kSignalOps; }

}  // namespace msrt
