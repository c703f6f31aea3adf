#include "ops/grad_positions.h"

#include <algorithm>

namespace msrt {

ValueId DimOf(GradBuilder& g, ValueId v, int axis) {
  if (!g.ok()) return kNoValue;
  const int64_t dim = g.type(v).dims[axis];
  if (IsKnown(dim)) return g.Ints({dim});
  return g.Add("Shape", {v}, {{"start", int64_t{axis}}, {"end", int64_t{axis} + 1}});
}

DimList& DimList::Add(int64_t dim) {
  known_.push_back(dim);
  values_.push_back(kNoValue);
  return *this;
}

DimList& DimList::Add(ValueId v, int axis) {
  if (!g_.ok()) return *this;
  const int64_t dim = g_.type(v).dims[axis];
  known_.push_back(IsKnown(dim) ? dim : kUnknownDim);
  values_.push_back(IsKnown(dim) ? kNoValue : DimOf(g_, v, axis));
  return *this;
}

DimList& DimList::Add(ValueId v, int begin, int end) {
  for (int d = begin; d < end; ++d) Add(v, d);
  return *this;
}

ValueId DimList::list() const {
  if (std::all_of(values_.begin(), values_.end(), [](ValueId v) { return v == kNoValue; }))
    return g_.Ints(known_);
  std::vector<ValueId> parts;
  for (size_t i = 0; i < known_.size(); ++i)
    parts.push_back(values_[i] != kNoValue ? values_[i] : g_.Ints({known_[i]}));
  return Joined(g_, std::move(parts), 0);
}

ValueId ReshapeToDims(GradBuilder& g, ValueId v, const DimList& dims) {
  return g.Add("Reshape", {v, dims.list()}, {{"allowzero", int64_t{1}}});
}

ValueId Permuted(GradBuilder& g, ValueId v, std::vector<int64_t> perm) {
  if (std::is_sorted(perm.begin(), perm.end())) return v;
  return g.Add("Transpose", {v}, {{"perm", std::move(perm)}});
}

ValueId PartOf(GradBuilder& g, ValueId v, int64_t axis, int64_t begin, int64_t end, int64_t step) {
  return g.Add("Slice", {v},
               {{"starts", std::vector<int64_t>{begin}},
                {"ends", std::vector<int64_t>{end}},
                {"axes", std::vector<int64_t>{axis}},
                {"steps", std::vector<int64_t>{step}}});
}

ValueId Joined(GradBuilder& g, std::vector<ValueId> parts, int64_t axis) {
  return parts.size() == 1 ? parts[0] : g.Add("Concat", std::move(parts), {{"axis", axis}});
}

ValueId WithAxes(GradBuilder& g, ValueId v, std::vector<int64_t> axes) {
  return g.Add("Unsqueeze", {v}, {{"axes", std::move(axes)}});
}

ValueId ZerosOfDims(GradBuilder& g, const DimList& dims, ValueId like) {
  return g.Add("Expand", {g.Scalar(0, like), dims.list()});
}

ValueId CountUpTo(GradBuilder& g, int64_t count) {
  const ValueId like = g.Ints({});
  return g.Add("Range",
               {g.Scalar(0, like), g.Scalar(static_cast<double>(count), like), g.Scalar(1, like)});
}

ValueId CountAlong(GradBuilder& g, ValueId v, int axis) {
  if (!g.ok()) return kNoValue;
  if (const int64_t dim = g.type(v).dims[axis]; IsKnown(dim)) return CountUpTo(g, dim);
  const ValueId count = DimOf(g, v, axis);
  const ValueId limit = g.Add("Squeeze", {count}, {{"axes", std::vector<int64_t>{0}}});
  return g.Add("Range", {g.Scalar(0, count), limit, g.Scalar(1, count)});
}

ValueId PositionsOf(GradBuilder& g, ValueId like) {
  if (!g.ok()) return kNoValue;
  if (g.type(like).concrete()) return g.ReshapeTo(CountUpTo(g, g.type(like).elements()), like);
  const ValueId count = g.Add("Size", {like});
  return g.ReshapeTo(g.Add("Range", {g.Scalar(0, count), count, g.Scalar(1, count)}), like);
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
