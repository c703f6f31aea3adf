// Gradients of Fourier transforms. The real and imaginary parts of a number count as two numbers,
// so the transposed transform is the one in the other direction.
#include "ops/grad_builder.h"
#include "ops/gradients.h"
#include "ops/infer.h"

namespace msrt {
namespace {

// The first `extent` elements along an axis, followed by zeros where there are fewer.
ValueId FitTo(GradBuilder& g, ValueId v, int64_t axis, int64_t from, int64_t extent) {
  const auto list = [](int64_t n) { return std::vector<int64_t>{n}; };
  if (from > extent) {
    return g.Add("Slice", {v}, {{"starts", list(0)}, {"ends", list(extent)}, {"axes", list(axis)}});
  }
  if (from == extent) return v;
  return g.Add("Pad", {v},
               {{"pads", std::vector<int64_t>{0, extent - from}}, {"axes", list(axis)}});
}

// Returns the attribute or the value of a constant input; `absent` if there is neither, and an
// error if the input is not constant.
Result<int64_t> KnownInt(const OpView& op, std::string_view attr, size_t input, int64_t absent) {
  if (!op.Has(attr) && !op.has_input(input)) return absent;
  MSRT_ASSIGN_OR_RETURN(const auto value, IntAttrOrInput(op, attr, input));
  if (!value) return Unsupported(attr, " is not known before the run");
  return *value;
}

AttrList TransformAttrs(int64_t axis, int64_t length, bool inverse, bool onesided) {
  return {{"axis", axis},
          {"dft_length", length},
          {"inverse", int64_t{inverse}},
          {"onesided", int64_t{onesided}}};
}

}  // namespace

Status GradDft(GradBuilder& g) {
  const OpView& op = g.op();
  const Type x = g.type(g.input(0));
  if (!x.rank_known) return Unsupported("the rank of the input is not known; declare it");
  MSRT_ASSIGN_OR_RETURN(const int64_t given, KnownInt(op, "axis", 2, -2));
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(given, x.rank()));
  const int64_t extent = x.dims[axis], parts = x.dims.back();
  if (!IsKnown(extent) || !IsKnown(parts))
    return Unsupported("dim ", axis, " of the input is not known; declare it");
  const bool inverse = op.Int("inverse") != 0, onesided = op.Int("onesided") != 0;
  MSRT_ASSIGN_OR_RETURN(
      const int64_t length,
      KnownInt(op, "dft_length", 1, onesided && inverse ? 2 * (extent - 1) : extent));
  const double divisor = static_cast<double>(length);
  if (onesided && inverse) {
    // A number of the half spectrum also stands for its mirror image, but for those that are their
    // own.
    const int64_t bins = length / 2 + 1;
    std::vector<double> counts(static_cast<size_t>(bins), 2 / divisor);
    counts[0] = 1 / divisor;
    if (length % 2 == 0) counts.back() = 1 / divisor;
    Dims dims = Dims::Filled(x.rank() - axis, 1);
    dims[0] = bins;
    const ValueId weights = g.CastTo(
        g.Constant("weights", ConstTensor::Of<double>(DType::kF64, dims, counts)), g.grad());
    const ValueId spectrum = g.Add(
        "DFT", {g.grad()}, TransformAttrs(axis, length, /*inverse=*/false, /*onesided=*/true));
    g.Set(0, FitTo(g, g.Times(spectrum, weights), axis, bins, extent));
    return OkStatus();
  }
  // Of a half spectrum the transform takes the other numbers as zeros.
  ValueId back =
      g.Add("DFT", {g.grad()}, TransformAttrs(axis, length, !inverse, /*onesided=*/false));
  back = g.Times(back, inverse ? 1 / divisor : divisor);
  back = FitTo(g, back, axis, length, extent);
  g.Set(0, FitTo(g, back, x.rank() - 1, 2, parts));
  return OkStatus();
}

// Frames, times the window, transformed.
Status GradStft(GradBuilder& g) {
  const OpView& op = g.op();
  const Type x = g.type(g.input(0)), y = g.type(g.output(0));
  if (!x.rank_known || !IsKnown(x.dims[1]) || !y.rank_known || !IsKnown(y.dims[1]))
    return Unsupported("the length of the signal or of its frames is not known; declare it");
  MSRT_ASSIGN_OR_RETURN(const int64_t step, KnownInt(op, "frame_step", 1, 1));
  const int64_t whole = g.has_input(2) ? g.type(g.input(2)).dims[0] : x.dims[1];
  MSRT_ASSIGN_OR_RETURN(const int64_t length, KnownInt(op, "frame_length", 3, whole));
  if (!IsKnown(length)) return Unsupported("the length of the window is not known; declare it");
  std::vector<int64_t> samples;
  for (int64_t frame = 0; frame < y.dims[1]; ++frame) {
    for (int64_t i = 0; i < length; ++i) samples.push_back(frame * step + i);
  }
  const ValueId indices =
      g.Constant("samples", ConstTensor::Of<int64_t>(DType::kI64, {y.dims[1], length}, samples));
  ValueId frames = g.Add("Gather", {g.input(0), indices}, {{"axis", int64_t{1}}});
  if (g.has_input(2)) {
    const ValueId window = g.Add("Unsqueeze", {g.input(2)}, {{"axes", std::vector<int64_t>{1}}});
    frames = g.Times(frames, window);
  }
  g.SetByComposition(
      {g.Add("DFT", {frames},
             TransformAttrs(2, length, /*inverse=*/false, /*onesided=*/op.Int("onesided") != 0))});
  return OkStatus();
}

}  // namespace msrt
