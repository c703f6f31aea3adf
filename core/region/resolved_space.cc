#include "core/region/resolved_space.h"

#include "core/base/checked_math.h"

namespace msrt {
namespace {

Interval WithinAxis(Interval i, int64_t extent) {
  const Interval c = Intersect(i, {0, extent});
  return c.empty() ? Interval{0, 0} : c;
}

// The hull of all indices that touch one of the elements.
Interval SearchInverse(const DimMap& map, Interval elements, int64_t axis_extent) {
  // Most user-defined ops have the axes of their outputs, which one call confirms.
  if (Interval{0, axis_extent}.Contains(elements) && map.Touched(elements) == elements)
    return elements;
  Interval found;
  for (int64_t i = 0; i < axis_extent; ++i) {
    if (!Intersect(map.Touched({i, i + 1}), elements).empty()) found = Hull(found, {i, i + 1});
  }
  return found;
}

Interval SearchInterior(const DimMap& map, Interval owned, int64_t axis_extent) {
  Interval best, run;
  for (int64_t i = 0; i < axis_extent; ++i) {
    if (owned.Contains(map.Touched({i, i + 1}))) {
      run = run.empty() || run.end != i ? Interval{i, i + 1} : Interval{run.begin, i + 1};
      if (run.size() > best.size()) best = run;
    }
  }
  return best;
}

}  // namespace

DimMap DimMap::Fixed(Interval interval) {
  DimMap m;
  m.fixed = interval;
  m.extent = interval.end;
  return m;
}

DimMap DimMap::Affine(int axis, int64_t offset, int64_t step, int64_t extent) {
  DimMap m;
  m.kind = Kind::kAffine;
  m.axis = axis, m.offset = offset, m.step = step, m.extent = extent;
  return m;
}

DimMap DimMap::Window(int axis, int64_t stride, int64_t dilation, int64_t kernel, int64_t pad,
                      int64_t extent) {
  DimMap m = Affine(axis, -pad, stride, extent);
  m.kind = Kind::kWindow;
  m.dilation = dilation, m.kernel = kernel;
  return m;
}

DimMap DimMap::TransposedWindow(int axis, int64_t stride, int64_t dilation, int64_t kernel,
                                int64_t pad, int64_t extent) {
  DimMap m = Window(axis, stride, dilation, kernel, pad, extent);
  m.kind = Kind::kTransposedWindow;
  return m;
}

DimMap DimMap::Block(int axis, int64_t size, int64_t extent, int64_t divisor, int64_t offset) {
  DimMap m = Affine(axis, offset, 1, extent);
  m.kind = Kind::kBlock;
  m.size = size, m.divisor = divisor;
  return m;
}

DimMap DimMap::Function(int axis, int64_t extent, std::shared_ptr<const IntervalMap> function) {
  DimMap m = Affine(axis, 0, 1, extent);
  m.kind = Kind::kFunction;
  m.function = std::move(function);
  return m;
}

Interval DimMap::Touched(Interval of_axis) const {
  if (kind == Kind::kFixed) return fixed;
  if (of_axis.empty()) return whole_if_empty ? Interval{0, extent} : Interval{0, 0};
  switch (kind) {
    case Kind::kFixed:
      break;
    case Kind::kAffine:
      return AffineNeeds(of_axis, offset, step, extent);
    case Kind::kWindow:
      return WindowNeeds(of_axis, step, dilation, kernel, -offset, extent);
    case Kind::kTransposedWindow:
      return TransposedWindowNeeds(of_axis, step, dilation, kernel, -offset, extent);
    case Kind::kBlock:
      return WithinAxis({FloorDiv(of_axis.begin + offset, divisor) * size,
                         (FloorDiv(of_axis.end - 1 + offset, divisor) + 1) * size},
                        extent);
    case Kind::kFunction:
      return function->Touched(of_axis);
  }
  return {0, 0};
}

Interval DimMap::Inverse(Interval elements, int64_t axis_extent) const {
  if (elements.empty()) return {0, 0};
  if (kind == Kind::kAffine) {
    const int64_t first = elements.begin - offset, last = elements.end - 1 - offset;
    const Interval of_axis = step > 0
                                 ? Interval{CeilDiv(first, step), FloorDiv(last, step) + 1}
                                 : Interval{CeilDiv(-last, -step), FloorDiv(-first, -step) + 1};
    return WithinAxis(of_axis, axis_extent);
  }
  if (kind == Kind::kBlock && divisor == 1) {
    return WithinAxis(
        {FloorDiv(elements.begin, size) - offset, CeilDiv(elements.end, size) - offset},
        axis_extent);
  }
  return SearchInverse(*this, elements, axis_extent);
}

Interval DimMap::Interior(Interval owned, int64_t axis_extent) const {
  const bool from_start = owned.begin <= 0, to_end = owned.end >= extent;
  if (from_start && to_end) return {0, axis_extent};
  // Both ends of what an index touches must be inside; an owned border has nothing beyond it.
  Interval inside{0, axis_extent};
  const auto at_least = [&](int64_t i) { inside.begin = std::max(inside.begin, i); };
  const auto below = [&](int64_t i) { inside.end = std::min(inside.end, i); };
  const int64_t first = owned.begin, last = owned.end - 1;
  switch (kind) {
    case Kind::kFixed:
      return owned.Contains(fixed) ? inside : Interval{0, 0};
    case Kind::kAffine:
    case Kind::kWindow: {
      const int64_t span = kind == Kind::kWindow ? dilation * (kernel - 1) : 0;
      if (step > 0) {
        if (!from_start) at_least(CeilDiv(first - offset, step));
        if (!to_end) below(FloorDiv(last - span - offset, step) + 1);
      } else {
        if (!from_start) below(FloorDiv(offset - first, -step) + 1);
        if (!to_end) at_least(CeilDiv(offset - last, -step));
      }
      break;
    }
    case Kind::kTransposedWindow:
      if (!from_start) at_least(step * (first - 1) + 1 + dilation * (kernel - 1) + offset);
      if (!to_end) below(step * (last + 1) + offset);
      break;
    case Kind::kBlock:
      if (!from_start) at_least(CeilDiv(first, size) * divisor - offset);
      if (!to_end) below(FloorDiv(last + 1, size) * divisor - offset);
      break;
    case Kind::kFunction:
      return SearchInterior(*this, owned, axis_extent);
  }
  return inside.empty() ? Interval{0, 0} : inside;
}

TensorMap TensorMap::Whole(std::span<const int64_t> extents) {
  TensorMap map;
  map.present = true;
  for (int64_t e : extents) map.dims.push_back(DimMap::Whole(e));
  return map;
}

TensorMap TensorMap::Same(std::span<const int64_t> extents, int first_axis) {
  TensorMap map;
  map.present = true;
  for (size_t d = 0; d < extents.size(); ++d)
    map.dims.push_back(DimMap::Same(first_axis + static_cast<int>(d), extents[d]));
  return map;
}

TensorMap TensorMap::Broadcast(std::span<const int64_t> extents, int axes) {
  TensorMap map = Same(extents, axes - static_cast<int>(extents.size()));
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] == 1) map.dims[d] = DimMap::Whole(1);
  }
  return map;
}

bool IsPresent(const TensorMap& map, const Box& piece) {
  const bool later = map.first_of >= 0 && piece[map.first_of].begin > 0;
  return map.present && !map.dropped && !(later && map.optional);
}

Box TouchedBox(const TensorMap& map, const Box& piece) {
  Box box;
  if (!IsPresent(map, piece)) return box;
  const bool touched = map.first_of < 0 || piece[map.first_of].begin == 0;
  for (const DimMap& dim : map.dims) {
    const Interval of_axis = dim.axis < 0 ? Interval{} : piece[dim.axis];
    box.push_back(touched ? dim.Touched(of_axis) : Interval{0, 0});
  }
  return box;
}

std::vector<Box> InputBoxes(const ResolvedSpace& space, const Box& piece) {
  std::vector<Box> boxes;
  for (const TensorMap& map : space.inputs) boxes.push_back(TouchedBox(map, piece));
  return boxes;
}

std::vector<Box> OutputBoxes(const ResolvedSpace& space, const Box& piece) {
  std::vector<Box> boxes;
  for (const TensorMap& map : space.outputs) boxes.push_back(TouchedBox(map, piece));
  return boxes;
}

std::optional<Box> PieceFor(const ResolvedSpace& space, size_t output, const Box& box) {
  if (box.empty()) return std::nullopt;
  const TensorMap& map = space.outputs[output];
  MSRT_CHECK(static_cast<size_t>(box.rank()) == map.dims.size());
  Box piece = space.axes.Whole();
  std::array<bool, Box::kMaxAxes> followed{};
  for (int d = 0; d < box.rank(); ++d) {
    const DimMap& dim = map.dims[static_cast<size_t>(d)];
    if (dim.axis < 0) continue;
    const Axis& axis = space.axes[dim.axis];
    if (axis.kind == AxisKind::kReduce || axis.kind == AxisKind::kWhole) continue;
    const Interval needed = dim.Inverse(box[d], axis.extent);
    bool& again = followed[static_cast<size_t>(dim.axis)];
    piece[dim.axis] = again ? Hull(piece[dim.axis], needed) : needed;
    again = true;
  }
  return piece;
}

std::optional<Box> PieceFor(const ResolvedSpace& space,
                            std::span<const std::optional<Box>> outputs) {
  std::optional<Box> piece;
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (!outputs[o]) continue;
    const std::optional<Box> one = PieceFor(space, o, *outputs[o]);
    if (!one) continue;
    piece = piece ? Hull(*piece, *one) : *one;
  }
  return piece;
}

void ExtendToGranule(const ResolvedSpace& space, std::span<const int64_t> granule, Box* piece) {
  if (granule.empty() || space.outputs.empty() || !space.outputs[0].present) return;
  // Where an index of the space makes a block of the output, the larger piece may end elsewhere.
  for (;;) {
    const Box box = OutputBoxes(space, *piece)[0];
    if (box.empty()) return;
    Box aligned = box;
    for (int d = 0; d < box.rank() && static_cast<size_t>(d) < granule.size(); ++d) {
      const auto i = static_cast<size_t>(d);
      aligned[d] = AlignOutward(box[d], granule[i], space.outputs[0].dims[i].extent);
    }
    if (aligned == box) return;
    const std::optional<Box> larger = PieceFor(space, 0, aligned);
    MSRT_CHECK(larger.has_value());
    *piece = Hull(*piece, *larger);
  }
}

std::vector<Box> RequiredInputs(const ResolvedSpace& space, size_t output, const Box& box) {
  const std::optional<Box> piece = PieceFor(space, output, box);
  if (piece) return InputBoxes(space, *piece);
  std::vector<Box> none;
  for (const TensorMap& map : space.inputs) {
    Box& empty = none.emplace_back();
    for (size_t d = 0; d < map.dims.size() && !map.dropped; ++d) empty.push_back({0, 0});
  }
  return none;
}

std::optional<Box> InteriorPiece(const ResolvedSpace& space, std::span<const Box> owned) {
  Box piece = space.axes.Whole();
  for (size_t i = 0; i < space.inputs.size(); ++i) {
    const TensorMap& map = space.inputs[i];
    if (!map.present || map.dropped) continue;
    MSRT_CHECK(static_cast<size_t>(owned[i].rank()) == map.dims.size());
    for (int d = 0; d < owned[i].rank(); ++d) {
      const DimMap& dim = map.dims[static_cast<size_t>(d)];
      if (dim.axis < 0) {
        if (!owned[i][d].Contains(dim.fixed)) return std::nullopt;
        continue;
      }
      const int64_t extent = space.axes[dim.axis].extent;
      piece[dim.axis] = Intersect(piece[dim.axis], dim.Interior(owned[i][d], extent));
    }
  }
  for (int a = 0; a < piece.rank(); ++a) {
    const Axis& axis = space.axes[a];
    const bool needs_all = axis.kind == AxisKind::kReduce || axis.kind == AxisKind::kWhole;
    if (needs_all && piece[a].size() != axis.extent) return std::nullopt;
  }
  if (piece.empty()) return std::nullopt;
  return piece;
}

}  // namespace msrt
