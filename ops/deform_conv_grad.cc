// Gradient of DeformConv, by composition: pixels are read at the moved taps, weighted by the mask,
// and multiplied by the weights as matrices.
#include "ops/grad_positions.h"
#include "ops/gradients.h"
#include "ops/sampling_grad.h"
#include "ops/window.h"

namespace msrt {
namespace {

// Where each tap reads along one axis without offsets: [taps, positions].
ValueId TapOrigins(GradBuilder& g, const Windows& windows, int axis, ValueId like) {
  std::vector<int64_t> origins;
  const auto& [a0, a1, a2] = windows.axis;
  const WindowAxis& own = windows.axis[static_cast<size_t>(axis)];
  const int64_t taps = a0.kernel * a1.kernel * a2.kernel, places = a0.out * a1.out * a2.out;
  const int64_t tap_step[] = {a1.kernel * a2.kernel, a2.kernel, 1};
  const int64_t place_step[] = {a1.out * a2.out, a2.out, 1};
  for (int64_t t = 0; t < taps; ++t) {
    for (int64_t p = 0; p < places; ++p) {
      origins.push_back(own.start(p / place_step[axis] % own.out) +
                        t / tap_step[axis] % own.kernel * own.dilation);
    }
  }
  return g.CastTo(ReshapeToDims(g, g.Ints(std::move(origins)), DimList(g).Add(taps).Add(places)),
                  like);
}

}  // namespace

Status GradDeformConv(GradBuilder& g) {
  const ValueId x = g.input(0), w = g.input(1), offset = g.input(2);
  const Type x_type = g.type(x), w_type = g.type(w);
  if (!x_type.concrete() || !w_type.concrete())
    return Unsupported("the dims of X and W are not known; declare them");
  MSRT_ASSIGN_OR_RETURN(
      const Windows windows,
      WindowsOf(g.op(), x_type.dims, std::span<const int64_t>(w_type.dims).subspan(2)));
  const int64_t batch = x_type.dims[0], channels = x_type.dims[1], outputs = w_type.dims[0],
                groups = g.op().Int("group"), offset_groups = g.op().Int("offset_group");
  int64_t taps = 1, places = 1, pixels = 1;
  for (const WindowAxis& a : windows.axis) taps *= a.kernel, places *= a.out, pixels *= a.in;
  const int64_t group_channels = channels / offset_groups;
  const auto reshaped = [&](ValueId v, std::vector<int64_t> dims) {
    DimList list(g);
    for (int64_t d : dims) list.Add(d);
    return ReshapeToDims(g, v, list);
  };
  // Images are those of each offset group: [batch * groups * pixels, channels of a group].
  const ValueId images = reshaped(
      Permuted(g, reshaped(x, {batch, offset_groups, group_channels, pixels}), {0, 1, 3, 2}),
      {batch * offset_groups * pixels, group_channels});
  const ValueId offsets =
      reshaped(offset, {batch * offset_groups, taps, int64_t{windows.rank}, places});
  std::vector<std::vector<PixelTap>> axes;
  std::vector<ValueId> extents;
  for (int a = 0; a < windows.rank; ++a) {
    const ValueId moved =
        g.Add("Squeeze", {PartOf(g, offsets, 2, a, a + 1)}, {{"axes", std::vector<int64_t>{2}}});
    extents.push_back(g.Ints({windows.axis[static_cast<size_t>(a)].in}));
    axes.push_back(LinearTaps(g, g.Plus(moved, TapOrigins(g, windows, a, offset)), extents.back()));
  }
  const ValueId first =
      WithAxes(g, g.Times(CountUpTo(g, batch * offset_groups), g.Ints({pixels})), {1, 2});
  ValueId read = SumOf(g, WeightedPixels(g, images, first, axes, extents));
  if (g.has_input(4))
    read = g.Times(read, reshaped(g.input(4), {batch * offset_groups, taps, places, 1}));
  // [batch * offset groups, taps, places, channels] to [batch, groups, channels * taps, places].
  const int64_t depth = channels / groups * taps;
  const ValueId columns = reshaped(Permuted(g, read, {0, 3, 1, 2}), {batch, groups, depth, places});
  const ValueId weights = reshaped(w, {groups, outputs / groups, depth});
  ValueId y = g.ReshapeTo(g.Add("MatMul", {weights, columns}), g.output(0));
  if (g.has_input(3)) {
    std::vector<int64_t> dims(static_cast<size_t>(x_type.rank()) - 1, 1);
    dims[0] = outputs;
    y = g.Plus(y, reshaped(g.input(3), std::move(dims)));
  }
  g.SetByComposition({y});
  return OkStatus();
}

}  // namespace msrt
