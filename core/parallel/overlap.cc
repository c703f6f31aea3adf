#include "core/parallel/overlap.h"

#include <algorithm>

namespace msrt {
namespace {

// The largest part of `i` whose ends are multiples of `granule`, or ends of `whole`.
Interval AlignInward(Interval i, Interval whole, int64_t granule) {
  const auto up = [granule](int64_t x) { return (x + granule - 1) / granule * granule; };
  const int64_t begin = i.begin == whole.begin ? i.begin : up(i.begin);
  return {begin, i.end == whole.end ? i.end : std::max(begin, i.end - i.end % granule)};
}

}  // namespace

int DimOfAxis(const TensorMap& output, int axis) {
  for (size_t d = 0; d < output.dims.size(); ++d) {
    const DimMap& map = output.dims[d];
    if (map.axis == axis && map.kind == DimMap::Kind::kAffine && map.step == 1 && map.offset == 0)
      return static_cast<int>(d);
  }
  return -1;
}

std::vector<Box> InteriorAndRest(const ResolvedSpace& space, std::span<const int64_t> granule,
                                 const Box& piece, std::span<const Box> have) {
  if (space.outputs.size() != 1 || !space.outputs[0].present) return {piece};
  const std::optional<Box> found = InteriorPiece(space, have);
  if (!found) return {piece};
  Box interior = Intersect(*found, piece);
  if (interior.empty()) return {piece};
  for (int a = 0; a < interior.rank(); ++a) {
    const int d = DimOfAxis(space.outputs[0], a);
    if (d < 0 || static_cast<size_t>(d) >= granule.size()) continue;
    const int64_t multiple = std::max<int64_t>(1, granule[static_cast<size_t>(d)]);
    interior[a] = AlignInward(interior[a], piece[a], multiple);
  }
  if (interior.empty() || interior == piece) return {piece};
  std::vector<Box> boxes{interior};
  Box rest = piece;
  for (int a = 0; a < piece.rank(); ++a) {
    if (rest[a] == interior[a]) continue;
    if (DimOfAxis(space.outputs[0], a) < 0) return {piece};
    for (const Interval side :
         {Interval{rest[a].begin, interior[a].begin}, Interval{interior[a].end, rest[a].end}}) {
      if (side.empty()) continue;
      boxes.push_back(rest);
      boxes.back()[a] = side;
    }
    rest[a] = interior[a];
  }
  return boxes;
}

}  // namespace msrt
