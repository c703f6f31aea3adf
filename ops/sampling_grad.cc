// Gradients of GridSample, AffineGrid and RoiAlign.
#include "ops/sampling_grad.h"

#include "ops/grad_positions.h"
#include "ops/gradients.h"
#include "ops/infer.h"

namespace msrt {
namespace {

ValueId Int(GradBuilder& g, int64_t number) { return g.Ints({number}); }

// [all pixels of all images, channels] of [N, C, space...].
ValueId PixelsByChannel(GradBuilder& g, ValueId x) {
  if (!g.ok()) return kNoValue;
  std::vector<int64_t> perm = {0};
  const int rank = g.type(x).rank();
  for (int d = 2; d < rank; ++d) perm.push_back(d);
  perm.push_back(1);
  const Type type = g.type(x);
  DimList dims(g);
  // The number of pixels cannot be left to Reshape if there are no channels.
  if (type.concrete()) dims.Add(type.dims[0] * type.dims.product(2, rank));
  else dims.Add(-1);
  return ReshapeToDims(g, Permuted(g, x, std::move(perm)), dims.Add(x, 1));
}

ValueId ProductOfDims(GradBuilder& g, ValueId v, int begin, int end) {
  ValueId product = Int(g, 1);
  for (int d = begin; d < end; ++d) product = g.Times(product, DimOf(g, v, d));
  return product;
}

}  // namespace

ValueId ExtentOf(GradBuilder& g, ValueId v, int axis, ValueId like) {
  if (!g.ok()) return kNoValue;
  const int64_t dim = g.type(v).dims[axis];
  if (IsKnown(dim)) return g.Scalar(static_cast<double>(dim), like);
  return g.CastTo(g.Add("Squeeze", {DimOf(g, v, axis)}), like);
}

ValueId WholePart(GradBuilder& g, ValueId position) {
  return g.Add("Cast", {g.Add("Floor", {position})}, {{"to", DType::kI64}});
}

PixelTap ZeroOutside(GradBuilder& g, PixelTap tap, ValueId extent, ValueId like) {
  const ValueId last = g.Minus(extent, Int(g, 1));
  const ValueId inside = g.Add("Max", {g.Add("Min", {tap.pixel, last}), Int(g, 0)});
  const ValueId is_inside = g.Add("Equal", {inside, tap.pixel});
  const ValueId weight = tap.weight != kNoValue
                             ? g.Add("Where", {is_inside, tap.weight, g.Scalar(0, like)})
                             : g.CastTo(is_inside, like);
  return {inside, weight};
}

std::vector<PixelTap> LinearTaps(GradBuilder& g, ValueId position, ValueId extent) {
  const ValueId low = WholePart(g, position);
  const ValueId part = g.Minus(position, g.CastTo(low, position));
  return {ZeroOutside(g, {low, g.Minus(1.0, part)}, extent, position),
          ZeroOutside(g, {g.Plus(low, Int(g, 1)), part}, extent, position)};
}

std::vector<ValueId> WeightedPixels(GradBuilder& g, ValueId images, ValueId first,
                                    const std::vector<std::vector<PixelTap>>& axes,
                                    const std::vector<ValueId>& extents) {
  std::vector<PixelTap> all = {{Int(g, 0), kNoValue}};
  for (size_t a = 0; a < axes.size(); ++a) {
    std::vector<PixelTap> next;
    for (const PixelTap& before : all) {
      for (const PixelTap& tap : axes[a]) {
        const ValueId weight = before.weight == kNoValue ? tap.weight
                               : tap.weight == kNoValue  ? before.weight
                                                         : g.Times(before.weight, tap.weight);
        next.push_back({g.Plus(g.Times(before.pixel, extents[a]), tap.pixel), weight});
      }
    }
    all = std::move(next);
  }
  std::vector<ValueId> values;
  for (const PixelTap& tap : all) {
    const ValueId read =
        g.Add("Gather", {images, g.Plus(tap.pixel, first)}, {{"axis", int64_t{0}}});
    values.push_back(tap.weight == kNoValue
                         ? read
                         : g.Times(read, g.CastTo(WithAxes(g, tap.weight, {-1}), images)));
  }
  return values;
}

ValueId SumOf(GradBuilder& g, const std::vector<ValueId>& values) {
  ValueId sum = values[0];
  for (size_t i = 1; i < values.size(); ++i) sum = g.Plus(sum, values[i]);
  return sum;
}

namespace {

// ---- GridSample ---------------------------------------------------------------------------------

// A pixel outside the image, reflected at its borders. Without align_corners these are half a pixel
// outside, so that the first and last pixel repeat.
ValueId Reflected(GradBuilder& g, ValueId pixel, ValueId extent, bool align_corners) {
  const ValueId one = Int(g, 1), two = Int(g, 2);
  if (!align_corners) {
    const ValueId turns = g.Add("Mod", {pixel, g.Times(two, extent)});
    const ValueId back = g.Minus(g.Minus(g.Times(two, extent), one), turns);
    return g.Add("Min", {turns, back});
  }
  const ValueId last = g.Minus(extent, one);
  // An axis of one pixel has only that one.
  const ValueId period = g.Add("Max", {g.Times(two, last), one});
  const ValueId turns = g.Add("Mod", {g.Add("Abs", {pixel}), period});
  return g.Add("Min", {turns, g.Minus(period, turns)});
}

// Cubic convolution with a = -0.75; `near` is a distance of at most 1, `far` of 1 to 2.
ValueId NearCubic(GradBuilder& g, ValueId d) {
  constexpr double a = -0.75;
  return g.Plus(g.Times(g.Plus(g.Times(d, a + 2), -(a + 3)), g.Square(d)), 1.0);
}
ValueId FarCubic(GradBuilder& g, ValueId d) {
  constexpr double a = -0.75;
  const ValueId inner = g.Plus(g.Times(g.Plus(g.Times(d, a), -5 * a), d), 8 * a);
  return g.Plus(g.Times(inner, d), -4 * a);
}

// The taps of one axis at `x`, in pixels.
std::vector<PixelTap> GridTaps(GradBuilder& g, ValueId x, ValueId extent) {
  const std::string_view mode = g.op().String("mode"), padding = g.op().String("padding_mode");
  std::vector<PixelTap> taps;
  if (mode == "nearest") {
    taps = {{WholePart(g, g.Add("Round", {x})), kNoValue}};
  } else {
    const ValueId low = WholePart(g, x), part = g.Minus(x, g.CastTo(low, x));
    const auto at = [&](int64_t i) { return g.Plus(low, Int(g, i)); };
    const ValueId rest = g.Minus(1.0, part);
    if (mode == "linear") {
      taps = {{low, rest}, {at(1), part}};
    } else {
      taps = {{at(-1), FarCubic(g, g.Plus(part, 1.0))},
              {low, NearCubic(g, part)},
              {at(1), NearCubic(g, rest)},
              {at(2), FarCubic(g, g.Plus(rest, 1.0))}};
    }
  }
  for (PixelTap& tap : taps) {
    if (padding == "zeros") {
      tap = ZeroOutside(g, tap, extent, x);
      continue;
    }
    if (padding == "reflection")
      tap.pixel = Reflected(g, tap.pixel, extent, g.op().Int("align_corners") != 0);
    tap.pixel = g.Add("Max", {g.Add("Min", {tap.pixel, g.Minus(extent, Int(g, 1))}), Int(g, 0)});
  }
  return taps;
}

}  // namespace

Status GradGridSample(GradBuilder& g) {
  const ValueId x = g.input(0);
  const Type type = g.type(x);
  if (!type.rank_known) return Unsupported("the rank of input 0 is not known; declare it");
  const int space = type.rank() - 2;
  // Positions are [N, all positions, 1] for each axis; the last axis is named first.
  DimList grid_dims(g);
  grid_dims.Add(x, 0).Add(-1).Add(space);
  const ValueId grid = g.Add("Reshape", {g.input(1), grid_dims.list()});
  std::vector<std::vector<PixelTap>> axes;
  std::vector<ValueId> extents;
  for (int a = 0; a < space; ++a) {
    const ValueId position = g.Add("Squeeze", {PartOf(g, grid, 2, space - 1 - a, space - a)},
                                   {{"axes", std::vector<int64_t>{2}}});
    const ValueId extent = ExtentOf(g, x, 2 + a, position), from_zero = g.Plus(position, 1.0);
    const ValueId twice = g.op().Int("align_corners") != 0
                              ? g.Times(from_zero, g.Plus(extent, -1.0))
                              : g.Plus(g.Times(from_zero, extent), -1.0);
    extents.push_back(DimOf(g, x, 2 + a));
    axes.push_back(GridTaps(g, g.Times(twice, 0.5), extents.back()));
  }
  const ValueId first =
      WithAxes(g, g.Times(CountAlong(g, x, 0), ProductOfDims(g, x, 2, type.rank())), {1});
  const ValueId sums = SumOf(g, WeightedPixels(g, PixelsByChannel(g, x), first, axes, extents));
  g.SetByComposition({g.ReshapeTo(Permuted(g, sums, {0, 2, 1}), g.output(0))});
  return OkStatus();
}

// ---- AffineGrid: positions times theta ----------------------------------------------------------

Status GradAffineGrid(GradBuilder& g) {
  const Type theta = g.type(g.input(0));
  const auto size = IntsAttrOrInput(g.op(), "size", 1);
  if (!theta.rank_known || !IsKnown(theta.dims[1]) || !size)
    return Unsupported("the dims of theta or of the grid are not known; declare them");
  const int64_t space = theta.dims[1];
  // The positions are the grid of the identity, and 1.
  std::vector<int64_t> one_size = *size;
  one_size[0] = 1;
  const ValueId rows = ZerosOfDims(g, DimList(g).Add(space).Add(space + 1), g.input(0));
  const ValueId identity = WithAxes(g, g.Add("EyeLike", {rows}), {0});
  const ValueId grid =
      g.Add("AffineGrid", {identity},
            {{"size", std::move(one_size)}, {"align_corners", g.op().Int("align_corners")}});
  const ValueId positions = g.Add("Pad", {g.Add("Reshape", {grid, g.Ints({-1, space})})},
                                  {{"pads", std::vector<int64_t>{0, 0, 0, 1}}, {"value", 1.0}});
  const ValueId grad =
      g.Add("Reshape", {g.grad(), DimList(g).Add(g.input(0), 0).Add(-1).Add(space).list()});
  g.Set(0, g.Add("MatMul", {Permuted(g, grad, {0, 2, 1}), positions}));
  return OkStatus();
}

// ---- RoiAlign -----------------------------------------------------------------------------------

namespace {

// The taps of all samples of one axis, [regions, bins * samples].
std::vector<PixelTap> RegionTaps(GradBuilder& g, int axis, int64_t bins, int64_t per_bin,
                                 ValueId extent) {
  const ValueId rois = g.input(1);
  const bool half_pixel = g.op().String("coordinate_transformation_mode") == "half_pixel";
  const double scale = g.op().Float("spatial_scale");
  // x1, y1, x2, y2.
  const int64_t column = axis == 0 ? 1 : 0;
  const ValueId first = g.Times(PartOf(g, rois, 1, column, column + 1), scale);
  const ValueId last = g.Times(PartOf(g, rois, 1, column + 2, column + 3), scale);
  ValueId length = g.Minus(last, first);
  if (!half_pixel) length = g.Add("Max", {length, g.Scalar(1, length)});
  const auto samples = static_cast<double>(per_bin);
  const ValueId numbers = g.CastTo(CountUpTo(g, bins * per_bin), rois);
  const ValueId places = g.Times(g.Plus(numbers, 0.5), 1 / samples);  // in bins
  const ValueId begin = half_pixel ? g.Plus(first, -0.5) : first;
  const ValueId x = g.Plus(begin, g.Times(g.Times(length, 1 / static_cast<double>(bins)), places));
  const ValueId top = g.CastTo(extent, rois);
  const ValueId inside =
      g.Add("And", {g.Add("GreaterOrEqual", {x, g.Scalar(-1, x)}), g.Add("LessOrEqual", {x, top})});
  const ValueId clamped = g.Add("Min", {g.Add("Max", {x, g.Scalar(0, x)}), g.Plus(top, -1.0)});
  const ValueId low = WholePart(g, clamped);
  const ValueId part = g.Minus(clamped, g.CastTo(low, x));
  const auto weight = [&](ValueId w) { return g.Add("Where", {inside, w, g.Scalar(0, w)}); };
  const ValueId high = g.Add("Min", {g.Plus(low, Int(g, 1)), g.Minus(extent, Int(g, 1))});
  return {{low, weight(g.Minus(1.0, part))}, {high, weight(part)}};
}

}  // namespace

Status GradRoiAlign(GradBuilder& g) {
  const int64_t per_bin = g.op().Int("sampling_ratio");
  if (per_bin == 0) {
    return Unsupported(
        "with sampling_ratio = 0 the number of samples depends on the regions, which "
        "has no gradient; set sampling_ratio");
  }
  const ValueId x = g.input(0);
  if (!g.type(x).rank_known) return Unsupported("the rank of input 0 is not known; declare it");
  const int64_t height = g.op().Int("output_height"), width = g.op().Int("output_width");
  const std::vector<ValueId> extents = {DimOf(g, x, 2), DimOf(g, x, 3)};
  auto rows = RegionTaps(g, 0, height, per_bin, extents[0]),
       columns = RegionTaps(g, 1, width, per_bin, extents[1]);
  for (PixelTap& tap : rows) tap = {WithAxes(g, tap.pixel, {2}), WithAxes(g, tap.weight, {2})};
  for (PixelTap& tap : columns) tap = {WithAxes(g, tap.pixel, {1}), WithAxes(g, tap.weight, {1})};
  const ValueId images = g.Add("Cast", {g.input(2)}, {{"to", DType::kI64}});
  const ValueId first = WithAxes(g, g.Times(images, ProductOfDims(g, x, 2, 4)), {1, 2});
  const std::vector<ValueId> corners =
      WeightedPixels(g, PixelsByChannel(g, x), first, {rows, columns}, extents);
  // The maximum is that of the weighted corners, as in the op.
  const bool average = g.op().String("mode") == "avg";
  const ValueId samples = average ? SumOf(g, corners) : g.Add("Max", corners);
  DimList split(g);
  split.Add(g.input(1), 0).Add(height).Add(per_bin).Add(width).Add(per_bin).Add(x, 1);
  const ValueId pooled =
      g.Add(average ? "ReduceMean" : "ReduceMax", {ReshapeToDims(g, samples, split)},
            {{"axes", std::vector<int64_t>{2, 4}}, {"keepdims", int64_t{0}}});
  g.SetByComposition({Permuted(g, pooled, {0, 3, 1, 2})});
  return OkStatus();
}

}  // namespace msrt
