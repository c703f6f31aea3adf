#include "ops/resample.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/half.h"
#include "ops/infer.h"

namespace msrt {
namespace {

constexpr int64_t kMaxDim = int64_t{1} << 56;

template <typename Enum>
Enum ChoiceOf(const OpView& op, std::string_view attr, std::span<const std::string_view> choices) {
  const auto it = std::find(choices.begin(), choices.end(), op.String(attr));
  return static_cast<Enum>(it - choices.begin());
}

// Returns the axes that roi, scales and sizes refer to.
Result<std::vector<int>> ResizedAxes(const OpView& op, int rank) {
  if (op.Has("axes")) return NormalizeAxes(op.Ints("axes"), rank);
  std::vector<int> all;
  for (int i = 0; i < rank; ++i) all.push_back(i);
  return all;
}

template <typename T>
Status CheckLength(const std::optional<std::vector<T>>& list, std::string_view what,
                   size_t length) {
  if (!list || list->empty() || list->size() == length) return OkStatus();
  return InvalidModel(what, " has ", list->size(), " elements, must have ", length,
                      ", one for each resized axis", what == "roi" ? ", twice" : "");
}

Status CheckLists(const OpView& op, const ResizeLists& lists, size_t axes) {
  constexpr std::string_view kNames[] = {"", "roi", "scales", "sizes"};
  for (size_t input : {kResizeRoiInput, kResizeScalesInput, kResizeSizesInput}) {
    if (op.Has(kNames[input]) && op.has_input(input)) {
      return InvalidModel(kNames[input], " is given as an attribute and as input ", input,
                          ", must be one of them");
    }
  }
  // An input of length zero counts as absent, as older exporters write it.
  const auto given = [](const auto& list) { return !list || !list->empty(); };
  const bool known = lists.scales.has_value() && lists.sizes.has_value();
  if (known && given(lists.scales) == given(lists.sizes))
    return InvalidModel("needs either scales or sizes");
  MSRT_RETURN_IF_ERROR(CheckLength(lists.roi, "roi", 2 * axes));
  MSRT_RETURN_IF_ERROR(CheckLength(lists.scales, "scales", axes));
  MSRT_RETURN_IF_ERROR(CheckLength(lists.sizes, "sizes", axes));
  constexpr double kLimit = 2147483647;
  for (double v : lists.roi.value_or(std::vector<double>())) {
    if (!(std::abs(v) <= kLimit))
      return InvalidModel("roi holds ", v, ", must be between -2^31 and 2^31");
  }
  for (double v : lists.scales.value_or(std::vector<double>())) {
    if (!(v > 0 && v <= kLimit))
      return InvalidModel("scales holds ", v, ", must be greater than 0 and at most 2^31");
  }
  for (int64_t v : lists.sizes.value_or(std::vector<int64_t>())) {
    if (v < 0 || v > kMaxDim) return InvalidModel("sizes holds ", v, ", must be 0 to 2^56");
  }
  return OkStatus();
}

Status SetScale(int index, double scale, ResizeAxis* a) {
  if (scale == 1) return OkStatus();
  a->scale = scale;
  a->scale_is_ratio = false;
  a->out = kUnknownDim;
  if (!IsKnown(a->in)) return OkStatus();
  // Computed in float: 10 elements at the float nearest to 0.7 are 7, not 6.99999988 truncated to
  // 6.
  const double out = std::floor(static_cast<float>(a->in) * static_cast<float>(scale));
  if (out > static_cast<double>(kMaxDim))
    return InvalidModel("axis ", index, " of ", a->in, " elements is too long at scale ", scale);
  a->out = static_cast<int64_t>(out);
  return OkStatus();
}

Status SetSize(int index, int64_t size, ResizeAxis* a) {
  a->out = size;
  if (!IsKnown(a->in)) return OkStatus();
  if (a->in == 0 && size != 0)
    return InvalidModel("axis ", index, " is empty and cannot be resized to ", size);
  a->scale = a->in == 0 ? 1 : static_cast<double>(size) / static_cast<double>(a->in);
  return OkStatus();
}

// Sets one scale for all resized axes: the smallest or the largest that a size requires.
Status SetSizesByAspect(std::span<const int> axes, std::span<const int64_t> sizes, bool not_larger,
                        Resample* r) {
  double scale = not_larger ? std::numeric_limits<double>::infinity() : 0;
  bool known = true;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t in = r->axis[static_cast<size_t>(axes[i])].in;
    known = known && IsKnown(in);
    if (!IsKnown(in) || in == 0) continue;
    const double own = static_cast<double>(sizes[i]) / static_cast<double>(in);
    scale = not_larger ? std::min(scale, own) : std::max(scale, own);
  }
  for (int index : axes) {
    ResizeAxis& a = r->axis[static_cast<size_t>(index)];
    a.scale_is_ratio = false;
    a.scale = scale;
    a.out = kUnknownDim;
    if (!known) continue;
    const double out = a.in == 0 ? 0 : std::floor(scale * static_cast<double>(a.in) + 0.5);
    if (out > static_cast<double>(kMaxDim))
      return InvalidModel("axis ", index, " of ", a.in, " elements is too long at scale ", scale);
    a.out = static_cast<int64_t>(out);
  }
  return OkStatus();
}

// Reads the local attributes of a piece: its position in the whole input and output.
Status SetPieceIntervals(const OpView& op, const Dims& input, Resample* r) {
  const auto origin = op.Ints("input_origin"), out_begin = op.Ints("output_origin"),
             out_dims = op.Ints("output_dims");
  for (size_t i = 0; i < static_cast<size_t>(r->rank); ++i) {
    ResizeAxis& a = r->axis[i];
    const int64_t own = input[static_cast<int>(i)];
    a.in_piece = {origin[i], origin[i] + (IsKnown(own) ? own : 0)};
    a.out_piece = {out_begin[i], out_begin[i] + out_dims[i]};
    if (a.in_piece.end > a.in || (IsKnown(a.out) && a.out_piece.end > a.out)) {
      return InvalidModel("axis ", i, ": ", a.in_piece, " and ", a.out_piece, " are not parts of ",
                          a.in, " inputs and ", a.out, " outputs");
    }
  }
  return OkStatus();
}

// An explicit scale is a float that approximates a decimal, so a quotient by it has a relative
// error of about 2^-24. A quotient that close to a half or a whole number is rounded to it, because
// that decides which element is nearest (3.5 / 0.7 is 5). Rounding is monotonic, so coordinates
// stay in order.
double SnapToHalf(double quotient) {
  const double half = std::nearbyint(2 * quotient) / 2;
  return std::abs(quotient - half) <= std::abs(quotient) * 0x1p-24 ? half : quotient;
}

// Returns y / scale, exact if the scale is a ratio of integers.
double Unscale(const ResizeAxis& a, double y) {
  if (a.scale_is_ratio) return y * static_cast<double>(a.in) / static_cast<double>(a.out);
  return SnapToHalf(y / a.scale);
}

// Interpolates from corner to corner. The far corner of the output is at scale * in, which need not
// be a whole number: ONNX and its tests define length_resized by scale = length_resized /
// length_original.
double AlignCorners(const ResizeAxis& a, double y) {
  if (a.out <= 1) return 0;
  const double along = y * static_cast<double>(a.in - 1);
  if (a.scale_is_ratio) return along / static_cast<double>(a.out - 1);
  return SnapToHalf(along / (a.scale * static_cast<double>(a.in) - 1));
}

int64_t FloorToInt(double x) {
  return static_cast<int64_t>(std::floor(std::clamp(x, -0x1p60, 0x1p60)));
}

int64_t NearestOf(ResizeNearest rule, double x) {
  const int64_t floor = FloorToInt(x);
  const double rest = x - static_cast<double>(floor);
  switch (rule) {
    case ResizeNearest::kRoundPreferFloor:
      return rest > 0.5 ? floor + 1 : floor;
    case ResizeNearest::kRoundPreferCeil:
      return rest >= 0.5 ? floor + 1 : floor;
    case ResizeNearest::kFloor:
      return floor;
    case ResizeNearest::kCeil:
      return rest > 0 ? floor + 1 : floor;
  }
  return floor;
}

// An antialiasing filter is stretched by 1 / scale when the image shrinks.
double FilterScale(const Resample& r, const ResizeAxis& a) {
  return r.antialias ? std::min(a.scale, 1.0) : 1.0;
}

double CubicWeight(double distance, double a) {
  const double d = std::abs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

}  // namespace

std::vector<double> FloatValues(DType dtype, const void* data, int64_t elements) {
  std::vector<double> values(static_cast<size_t>(elements));
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::kF64) values[i] = static_cast<const double*>(data)[i];
    else if (dtype == DType::kF32) values[i] = static_cast<const float*>(data)[i];
    else if (dtype == DType::kF16) values[i] = static_cast<const Half*>(data)[i];
    else values[i] = static_cast<const BFloat16*>(data)[i];
  }
  return values;
}

ResizeLists ResizeListsOf(const OpView& op) {
  const auto floats = [&](std::string_view attr,
                          size_t input) -> std::optional<std::vector<double>> {
    const auto given = op.Floats(attr);
    if (!given.empty() || !op.has_input(input))
      return std::vector<double>(given.begin(), given.end());
    const ConstTensor* value = op.constant(input);
    if (value == nullptr) return std::nullopt;
    return FloatValues(value->dtype, value->bytes.data(), value->dims.elements());
  };
  return {.roi = floats("roi", kResizeRoiInput),
          .scales = floats("scales", kResizeScalesInput),
          .sizes = IntsAttrOrInput(op, "sizes", kResizeSizesInput)};
}

Result<Resample> ResampleOf(const OpView& op, const Dims& input, const ResizeLists& lists) {
  const bool piece = op.Has("input_dims");
  for (std::string_view attr : {"input_dims", "input_origin", "output_origin", "output_dims"}) {
    if (op.Ints(attr).size() != (piece ? input.size() : 0))
      return InvalidModel(attr, " does not fit an input of shape ", input);
  }
  MSRT_ASSIGN_OR_RETURN(const std::vector<int> axes, ResizedAxes(op, input.rank()));
  MSRT_RETURN_IF_ERROR(CheckLists(op, lists, axes.size()));
  Resample r;
  r.rank = input.rank();
  r.mode = ChoiceOf<ResizeMode>(op, "mode", kResizeModes);
  r.coordinates =
      ChoiceOf<ResizeCoordinates>(op, "coordinate_transformation_mode", kResizeCoordinates);
  r.nearest = ChoiceOf<ResizeNearest>(op, "nearest_mode", kResizeNearest);
  r.antialias = op.Int("antialias") != 0;
  r.exclude_outside = op.Int("exclude_outside") != 0;
  r.cubic_a = op.Float("cubic_coeff_a");
  for (int i = 0; i < r.rank; ++i) {
    ResizeAxis& a = r.axis[static_cast<size_t>(i)];
    a.in = a.out = piece ? op.Ints("input_dims")[static_cast<size_t>(i)] : input[i];
  }

  const bool by_scale = lists.scales && !lists.scales->empty(),
             by_size = lists.sizes && !lists.sizes->empty();
  const auto policy = op.String("keep_aspect_ratio_policy");
  if (by_size && policy != "stretch")
    MSRT_RETURN_IF_ERROR(SetSizesByAspect(axes, *lists.sizes, policy == "not_larger", &r));
  const bool crop = r.coordinates == ResizeCoordinates::kTfCropAndResize;
  if (crop && lists.roi && lists.roi->empty()) return InvalidModel("tf_crop_and_resize needs roi");
  for (size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& a = r.axis[static_cast<size_t>(axes[i])];
    if (by_scale) MSRT_RETURN_IF_ERROR(SetScale(axes[i], (*lists.scales)[i], &a));
    else if (by_size && policy == "stretch")
      MSRT_RETURN_IF_ERROR(SetSize(axes[i], (*lists.sizes)[i], &a));
    else if (!by_size) a.out = kUnknownDim;
    if (crop && lists.roi) a.roi_begin = (*lists.roi)[i], a.roi_end = (*lists.roi)[axes.size() + i];
  }
  if (piece) {
    MSRT_RETURN_IF_ERROR(SetPieceIntervals(op, input, &r));
  } else {
    for (ResizeAxis& a : r.axis) a.in_piece = {0, a.in}, a.out_piece = {0, a.out};
  }
  return r;
}

double SourceOf(const Resample& r, const ResizeAxis& a, int64_t y) {
  if (r.Unchanged(a)) return static_cast<double>(y);
  const double at = static_cast<double>(y), in = static_cast<double>(a.in),
               out = static_cast<double>(a.out);
  switch (r.coordinates) {
    case ResizeCoordinates::kHalfPixel:
      return Unscale(a, at + 0.5) - 0.5;
    case ResizeCoordinates::kHalfPixelSymmetric: {
      const double stretched = a.scale_is_ratio ? out : a.scale * in;
      return in / 2 * (1 - out / stretched) + Unscale(a, at + 0.5) - 0.5;
    }
    case ResizeCoordinates::kPytorchHalfPixel:
      return a.out > 1 ? Unscale(a, at + 0.5) - 0.5 : 0;
    case ResizeCoordinates::kAlignCorners:
      return AlignCorners(a, at);
    case ResizeCoordinates::kAsymmetric:
      return Unscale(a, at);
    case ResizeCoordinates::kTfCropAndResize:
      if (a.out == 1) return 0.5 * (a.roi_begin + a.roi_end) * (in - 1);
      return a.roi_begin * (in - 1) + at * (a.roi_end - a.roi_begin) * (in - 1) / (out - 1);
  }
  return 0;
}

bool IsExtrapolated(const Resample& r, const ResizeAxis& a, double source) {
  return r.coordinates == ResizeCoordinates::kTfCropAndResize &&
         (source < 0 || source > static_cast<double>(a.in - 1));
}

Interval TapsOf(const Resample& r, const ResizeAxis& a, double source) {
  if (r.mode == ResizeMode::kNearest || r.Unchanged(a)) {
    const int64_t nearest = NearestOf(r.nearest, source);
    return {nearest, nearest + 1};
  }
  const double radius = (r.mode == ResizeMode::kLinear ? 1.0 : 2.0) / FilterScale(r, a);
  const int64_t floor = FloorToInt(source), before = FloorToInt(-radius) + 1;
  return {floor + before, floor + 2 - before};
}

void WeightsOf(const Resample& r, const ResizeAxis& a, double source, Interval taps,
               std::span<double> weights) {
  const double scale = FilterScale(r, a);
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const int64_t tap = taps.begin + static_cast<int64_t>(i);
    const double distance = (static_cast<double>(tap) - source) * scale;
    const bool outside = r.exclude_outside && (tap < 0 || tap >= a.in);
    if (outside) weights[i] = 0;
    else if (r.mode == ResizeMode::kNearest) weights[i] = 1;
    else if (r.mode == ResizeMode::kLinear) weights[i] = std::max(1 - std::abs(distance), 0.0);
    else weights[i] = CubicWeight(distance, r.cubic_a);
    sum += weights[i];
  }
  if (!(r.antialias || r.exclude_outside) || sum == 0)
    return;  // the plain filters sum to 1 by themselves
  for (double& w : weights) w /= sum;
}

Interval ResizeNeeds(const Resample& r, const ResizeAxis& a, Interval out) {
  if (out.empty() || a.in == 0) return {0, 0};
  // Coordinates are monotonic along the axis, so the first and the last output are the extremes.
  const Interval reach =
      Hull(TapsOf(r, a, SourceOf(r, a, out.begin)), TapsOf(r, a, SourceOf(r, a, out.end - 1)));
  return {std::clamp<int64_t>(reach.begin, 0, a.in - 1),
          std::clamp<int64_t>(reach.end - 1, 0, a.in - 1) + 1};
}

Result<ResizeTable> TableOf(const Resample& r, const ResizeAxis& a) {
  ResizeTable t;
  if (a.out_piece.empty()) return t;
  const Interval needs = ResizeNeeds(r, a, a.out_piece);
  if (!a.in_piece.Contains(needs))
    return InvalidModel("a piece of a Resize has inputs ", a.in_piece, ", its outputs need ",
                        needs);
  t.count = static_cast<size_t>(TapsOf(r, a, SourceOf(r, a, a.out_piece.begin)).size());
  const auto outputs = static_cast<size_t>(a.out_piece.size());
  t.index.resize(outputs * t.count);
  t.weight.resize(outputs * t.count);
  t.extrapolated.resize(outputs);
  for (size_t o = 0; o < outputs; ++o) {
    const double source = SourceOf(r, a, a.out_piece.begin + static_cast<int64_t>(o));
    const Interval taps = TapsOf(r, a, source);
    t.extrapolated[o] = IsExtrapolated(r, a, source);
    WeightsOf(r, a, source, taps, std::span(t.weight).subspan(o * t.count, t.count));
    for (size_t i = 0; i < t.count; ++i) {
      // The border of the image repeats beyond it. The piece holds every input that is needed, so
      // clamping to the piece is the same.
      t.index[o * t.count + i] =
          std::clamp(taps.begin + static_cast<int64_t>(i), needs.begin, needs.end - 1) -
          a.in_piece.begin;
    }
  }
  return t;
}

}  // namespace msrt
