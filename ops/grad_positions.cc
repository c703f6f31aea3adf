#include "ops/grad_positions.h"

namespace msrt {

ValueId DimOf(GradBuilder& g, ValueId v, int axis) {
  if (!g.ok()) return kNoValue;
  const int64_t dim = g.type(v).dims[axis];
  if (IsKnown(dim)) return g.Ints({dim});
  return g.Add("Shape", {v}, {{"start", int64_t{axis}}, {"end", int64_t{axis} + 1}});
}

ValueId JoinLists(GradBuilder& g, std::vector<ValueId> lists) {
  return lists.size() == 1 ? lists[0] : g.Add("Concat", std::move(lists), {{"axis", int64_t{0}}});
}

ValueId ReshapeToDims(GradBuilder& g, ValueId v, ValueId dims) {
  return g.Add("Reshape", {v, dims}, {{"allowzero", int64_t{1}}});
}

ValueId WithAxes(GradBuilder& g, ValueId v, std::vector<int64_t> axes) {
  return g.Add("Unsqueeze", {v}, {{"axes", std::move(axes)}});
}

ValueId ZerosOfDims(GradBuilder& g, ValueId dims, ValueId like) {
  return g.Add("Expand", {g.Scalar(0, like), dims});
}

ValueId CountUpTo(GradBuilder& g, ValueId count) {
  const ValueId limit = g.Add("Squeeze", {count}, {{"axes", std::vector<int64_t>{0}}});
  return g.Add("Range", {g.Scalar(0, count), limit, g.Scalar(1, count)});
}

ValueId PositionsOf(GradBuilder& g, ValueId like) {
  if (!g.ok()) return kNoValue;
  const ValueId count = g.type(like).concrete() ? g.Ints({g.type(like).elements()})
                                                : WithAxes(g, g.Add("Size", {like}), {0});
  return g.ReshapeTo(CountUpTo(g, count), like);
}

ValueId SumAtPositions(GradBuilder& g, ValueId v, ValueId positions, ValueId like) {
  const ValueId flat = g.Ints({-1});
  const ValueId sums =
      g.Add("ScatterND",
            {g.Add("Reshape", {g.Zeros(like), flat}),
             WithAxes(g, g.Add("Reshape", {positions, flat}), {1}), g.Add("Reshape", {v, flat})},
            {{"reduction", std::string("add")}});
  return g.ReshapeTo(sums, like);
}

}  // namespace msrt
