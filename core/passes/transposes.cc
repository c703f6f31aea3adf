#include "core/passes/transposes.h"

#include <algorithm>
#include <numeric>

#include "ops/infer.h"
#include "ops/node_view.h"

namespace msrt {

bool IsView(const Node& node) {
  return node.op == "Reshape" || node.op == "Squeeze" || node.op == "Unsqueeze" ||
         node.op == "Flatten";
}

std::optional<AttrList> ReshapeAttrs(const Type& in, const Type& out) {
  if (!in.rank_known || !out.rank_known) return std::nullopt;
  std::vector<int64_t> shape(out.dims.begin(), out.dims.end());
  if (out.dims.known()) return AttrList{{"shape", std::move(shape)}, {"allowzero", int64_t{1}}};
  bool inferred = false;
  for (int i = 0; i < out.rank(); ++i) {
    int64_t& d = shape[static_cast<size_t>(i)];
    if (d == 0) return std::nullopt;
    if (IsKnown(d)) continue;
    if (i < in.rank() && ProvenEqual(in.dims[i], d)) {
      d = 0;
    } else if (inferred) {
      return std::nullopt;
    } else {
      d = -1;
      inferred = true;
    }
  }
  return AttrList{{"shape", std::move(shape)}};
}

Perm PermOf(const Rewriter& r, const Node& node) {
  const NodeView view(r.graph(), node);
  const auto perm = view.op().Ints("perm");
  Perm result(perm.begin(), perm.end());
  if (!perm.empty() || !view.op().input(0).rank_known) return result;
  result.resize(static_cast<size_t>(view.op().input(0).rank()));
  std::iota(result.rbegin(), result.rend(), 0);
  return result;
}

AttrList PermAttr(const Perm& perm) {
  return {{"perm", std::vector<int64_t>(perm.begin(), perm.end())}};
}

namespace {

bool IsIdentity(const Perm& perm) { return std::is_sorted(perm.begin(), perm.end()); }

// Whether only dims of 1 change position, so that no element moves.
bool MovesOnlyOnes(const Type& in, const Perm& perm) {
  int last = -1;
  for (int from : perm) {
    if (in.dims[from] == 1) continue;
    if (from < last) return false;
    last = from;
  }
  return true;
}

// Returns the position in `from` of each dim of `to`, if the two differ in dims of 1 only; -1 for a
// 1 that `from` does not have.
std::optional<Perm> WithoutOnes(const Type& from, const Type& to) {
  if (!from.rank_known || !to.rank_known) return std::nullopt;
  Perm origin(static_cast<size_t>(to.rank()), -1);
  int at = 0;
  for (int i = 0; i < to.rank(); ++i) {
    if (to.dims[i] == 1) continue;
    while (at < from.rank() && from.dims[at] == 1) ++at;
    if (at == from.rank() || !ProvenEqual(from.dims[at], to.dims[i])) return std::nullopt;
    origin[static_cast<size_t>(i)] = at++;
  }
  while (at < from.rank() && from.dims[at] == 1) ++at;
  return at == from.rank() ? std::optional(origin) : std::nullopt;
}

// Joins Transpose, Reshape that only adds or drops dims of 1, Transpose: the two Transposes become
// one, and the Reshape comes last.
bool JoinAcrossReshape(Rewriter* r, size_t n, const Perm& perm) {
  const auto view = r->Producer(r->node(n).inputs[0], "Reshape");
  if (!view || r->uses(r->node(n).inputs[0]) != 1) return false;
  const ValueId x = r->node(*view).inputs[0], reshaped = r->node(*view).outputs[0];
  const auto before = r->Producer(x, "Transpose");
  const auto origin = before ? WithoutOnes(r->type(x), r->type(reshaped)) : std::nullopt;
  if (!origin) return false;
  // The dims of x in their new order, those of 1 first.
  Perm moved;
  for (int i = 0; i < r->type(x).rank(); ++i) {
    if (std::find(origin->begin(), origin->end(), i) == origin->end()) moved.push_back(i);
  }
  for (int from : perm) {
    if ((*origin)[static_cast<size_t>(from)] >= 0)
      moved.push_back((*origin)[static_cast<size_t>(from)]);
  }
  const Perm first = PermOf(*r, r->node(*before));
  Perm both;
  for (int from : moved) both.push_back(first[static_cast<size_t>(from)]);
  Type between = r->type(x);
  for (size_t i = 0; i < moved.size(); ++i)
    between.dims[static_cast<int>(i)] = r->type(x).dims[moved[i]];
  auto attrs = ReshapeAttrs(between, r->type(r->node(n).outputs[0]));
  if (!attrs) return false;
  const ValueId turned = r->Add(n, "Transpose", {r->node(*before).inputs[0]}, PermAttr(both));
  return turned != kNoValue && r->Replace(n, "Reshape", {turned}, *std::move(attrs));
}

// ---- dims of 1 ----------------------------------------------------------------------------------

bool MovesAOne(const Type& in, const Perm& perm) {
  for (size_t i = 0; i < perm.size(); ++i) {
    if (in.dims[perm[i]] == 1 && perm[i] != static_cast<int>(i)) return true;
  }
  return false;
}

// Returns positions of dims: dims of 1 are where `fixed` has them, the others follow in `order`.
Perm AroundOnes(const Type& type, const Perm& fixed, const Perm& order) {
  Perm out;
  auto next = order.begin();
  for (int axis : fixed) {
    while (next != order.end() && type.dims[*next] == 1) ++next;
    out.push_back(type.dims[axis] == 1 ? axis : *next++);
  }
  return out;
}

Type Permuted(const Type& type, const Perm& perm) {
  Type out = type;
  for (size_t i = 0; i < perm.size(); ++i) out.dims[static_cast<int>(i)] = type.dims[perm[i]];
  return out;
}

// Moves dims of 1 in the views before or after a Transpose, which is free, and keeps their position
// in the Transpose: a batch of 1 between rows and heads hides the actual permutation.
bool LeaveOnesInPlace(Rewriter* r, size_t n, const Perm& perm) {
  const ValueId x = r->node(n).inputs[0], y = r->node(n).outputs[0];
  const Type in = r->type(x);
  if (!MovesAOne(in, perm)) return false;
  Perm as_is(perm.size());
  std::iota(as_is.begin(), as_is.end(), 0);
  const auto producer = r->Producer(x);
  if (producer && r->IsLive(*producer) && IsView(r->node(*producer)) && r->uses(x) == 1) {
    // Dims of 1 as in the result, the rest in the order of the input.
    const Perm placed = AroundOnes(in, perm, as_is);
    Perm rest;
    for (int axis : perm)
      rest.push_back(
          static_cast<int>(std::find(placed.begin(), placed.end(), axis) - placed.begin()));
    auto attrs = ReshapeAttrs(in, Permuted(in, placed));
    const ValueId view = attrs ? r->Add(n, "Reshape", {x}, *std::move(attrs)) : kNoValue;
    return view != kNoValue && r->Replace(n, "Transpose", {view}, PermAttr(rest));
  }
  const auto user = r->SoleUser(y);
  if (!user || !r->IsLive(*user) || !IsView(r->node(*user))) return false;
  // Dims of 1 as in the input, the rest in the order of the result.
  const Perm placed = AroundOnes(in, as_is, perm);
  auto attrs = ReshapeAttrs(Permuted(in, placed), r->type(y));
  const ValueId turned = attrs ? r->Add(n, "Transpose", {x}, PermAttr(placed)) : kNoValue;
  return turned != kNoValue && r->Replace(n, "Reshape", {turned}, *std::move(attrs));
}

// In a view, a Transpose and a view that drops dims of 1, drops these dims before the Transpose.
bool DropOnesBeforeTranspose(Rewriter* r, size_t n) {
  const ValueId turned = r->node(n).inputs[0];
  const auto transpose = r->uses(turned) == 1 ? r->Producer(turned, "Transpose") : std::nullopt;
  const auto view = transpose ? r->Producer(r->node(*transpose).inputs[0]) : std::nullopt;
  if (!view || !r->IsLive(*view) || !IsView(r->node(*view))) return false;
  const Type from = r->type(turned), to = r->type(r->node(n).outputs[0]);
  if (!from.rank_known || !to.rank_known || to.rank() >= from.rank()) return false;
  const Perm perm = PermOf(*r, r->node(*transpose));
  Perm kept;  // axes before the Transpose, in the order after it
  for (int i = 0; i < from.rank(); ++i) {
    const int at = static_cast<int>(kept.size());
    if (at < to.rank() && ProvenEqual(from.dims[i], to.dims[at]))
      kept.push_back(perm[static_cast<size_t>(i)]);
    else if (from.dims[i] != 1) return false;
  }
  if (static_cast<int>(kept.size()) != to.rank()) return false;
  Perm sorted = kept, rest;
  std::sort(sorted.begin(), sorted.end());
  Type viewed = to;
  for (size_t i = 0; i < sorted.size(); ++i)
    viewed.dims[static_cast<int>(i)] = r->type(r->node(*transpose).inputs[0]).dims[sorted[i]];
  for (int axis : kept)
    rest.push_back(
        static_cast<int>(std::find(sorted.begin(), sorted.end(), axis) - sorted.begin()));
  const ValueId x = r->node(*view).inputs[0];
  auto attrs = ReshapeAttrs(r->type(x), viewed);
  const ValueId few = attrs ? r->Add(n, "Reshape", {x}, *std::move(attrs)) : kNoValue;
  return few != kNoValue && r->Replace(n, "Transpose", {few}, PermAttr(rest));
}

// ---- splits after a Transpose -------------------------------------------------------------------

// Returns the permutation with axis `at` of the input replaced by `parts` axes.
Perm WithSplitAxis(const Perm& perm, int at, int parts) {
  Perm out;
  for (int from : perm) {
    for (int i = 0; i < (from == at ? parts : 1); ++i)
      out.push_back(from > at ? from + parts - 1 : from + i);
  }
  return out;
}

// Returns `type` before the Transpose, with axis `at` replaced by dims of `out` from `first` on.
Type SplitBefore(const Type& type, int at, const Type& out, int first, int parts) {
  Type split = type;
  split.dims.erase(at);
  for (int i = 0; i < parts; ++i) split.dims.insert(at + i, out.dims[first + i]);
  return split;
}

// Handles a view, a Transpose, and a Reshape that splits one axis of the result: exporters swap the
// last two dims of a tensor of higher rank this way, or split heads after the Transpose. The axis
// is split before the Transpose, by the existing view, if it is still needed.
bool SplitBeforeTranspose(Rewriter* r, size_t n) {
  const ValueId turned = r->node(n).inputs[0], out = r->node(n).outputs[0];
  const auto transpose = r->node(n).op == "Reshape" && r->uses(turned) == 1
                             ? r->Producer(turned, "Transpose")
                             : std::nullopt;
  if (!transpose) return false;
  const ValueId viewed = r->node(*transpose).inputs[0];
  const auto view = r->Producer(viewed);
  if (!view || !r->IsLive(*view) || !IsView(r->node(*view)) || r->uses(viewed) != 1) return false;
  const ValueId x = r->node(*view).inputs[0];
  const Type &to = r->type(out), &from = r->type(turned);
  if (!to.rank_known || !from.rank_known || to.rank() <= from.rank()) return false;
  const Perm perm = PermOf(*r, r->node(*transpose));
  const int parts = to.rank() - from.rank() + 1;
  for (int j = 0; j < from.rank(); ++j) {
    bool alike = true;
    for (int i = 0; i < from.rank() && alike; ++i)
      alike = i == j || ProvenEqual(from.dims[i], to.dims[i < j ? i : i + parts - 1]);
    if (!alike) continue;
    const int at = perm[static_cast<size_t>(j)];
    const Type split = SplitBefore(r->type(viewed), at, to, j, parts);
    const AttrList order = PermAttr(WithSplitAxis(perm, at, parts));
    if (ProvenEqual(split, r->type(x))) return r->Replace(n, "Transpose", {x}, order);
    auto attrs = ReshapeAttrs(r->type(x), split);
    const ValueId apart = attrs ? r->Add(n, "Reshape", {x}, *std::move(attrs)) : kNoValue;
    return apart != kNoValue && r->Replace(n, "Transpose", {apart}, order);
  }
  return false;
}

// ---- shuffled channels --------------------------------------------------------------------------

// A view that takes the channels apart into groups, a Transpose that exchanges groups and channels
// of a group, and the view back: a Gather along the channels, which delegates run in any layout.
bool GatherInsteadOfShuffle(Rewriter* r, size_t n) {
  const ValueId turned = r->node(n).inputs[0];
  const auto transpose = r->uses(turned) == 1 ? r->Producer(turned, "Transpose") : std::nullopt;
  if (!transpose) return false;
  const ValueId grouped = r->node(*transpose).inputs[0];
  const auto view = r->uses(grouped) == 1 ? r->Producer(grouped) : std::nullopt;
  if (!view || !r->IsLive(*view) || !IsView(r->node(*view))) return false;
  const ValueId x = r->node(*view).inputs[0];
  const Type &from = r->type(x), &apart = r->type(grouped), &to = r->type(r->node(n).outputs[0]);
  if (!from.rank_known || !apart.rank_known || from.rank() < 3) return false;
  if (apart.rank() != from.rank() + 1 || !ProvenEqual(from, to)) return false;
  Perm exchange(static_cast<size_t>(apart.rank()));
  std::iota(exchange.begin(), exchange.end(), 0);
  std::swap(exchange[1], exchange[2]);
  if (PermOf(*r, r->node(*transpose)) != exchange) return false;
  for (int i = 0; i < from.rank(); ++i) {
    if (i != 1 && !ProvenEqual(from.dims[i], apart.dims[i < 1 ? i : i + 1])) return false;
  }
  constexpr int64_t kMaxChannels = 1 << 16;
  const int64_t groups = apart.dims[1], channels = apart.dims[2];
  if (!IsKnown(groups) || !IsKnown(channels) || groups <= 0 || channels <= 0) return false;
  if (groups > kMaxChannels / channels || from.dims[1] != groups * channels) return false;
  std::vector<int64_t> order;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t g = 0; g < groups; ++g) order.push_back(g * channels + c);
  }
  const Dims dims{groups * channels};
  const ValueId indices =
      r->AddConstant(StrCat(r->graph().value(r->node(n).outputs[0]).name, ".order"),
                     ConstTensor::Of<int64_t>(DType::kI64, dims, order));
  return r->Replace(n, "Gather", {x, indices}, {{"axis", int64_t{1}}});
}

// ---- one index ----------------------------------------------------------------------------------

// The axis and the index of a Gather that takes one slice of its input, if both are known and
// valid; for data, not for lists of dims, which other passes follow.
struct Pick {
  int axis;
  int64_t index;
};
std::optional<Pick> PickOf(const Rewriter& r, const Node& node) {
  const Type& x = r.type(node.inputs[0]);
  const ConstTensor* index = r.constant(node.inputs[1]);
  if (index == nullptr || index->dims.rank() != 0 || !x.rank_known ||
      r.constant(node.inputs[0]) != nullptr || !IsFloat(x.dtype))
    return std::nullopt;
  const auto axis = NormalizeAxis(NodeView(r.graph(), node).op().Int("axis"), x.rank());
  if (!axis.ok() || !IsKnown(x.dims[*axis])) return std::nullopt;
  const int64_t given = IntValues(*index)[0], at = given < 0 ? given + x.dims[*axis] : given;
  return at >= 0 && at < x.dims[*axis] ? std::optional(Pick{*axis, at}) : std::nullopt;
}

ValueId AddSlice(Rewriter* r, size_t n, ValueId x, const Pick& pick) {
  using List = std::vector<int64_t>;
  return r->Add(
      n, "Slice", {x},
      {{"starts", List{pick.index}}, {"ends", List{pick.index + 1}}, {"axes", List{pick.axis}}});
}

AttrList AxisAttr(int axis) { return {{"axes", std::vector<int64_t>{axis}}}; }

}  // namespace

// A Gather of one index is a Slice, which is a plain copy, and a view. A slice along an axis that a
// Transpose moves, such as the queries of packed queries, keys and values, is taken before the
// Transpose, so that each part is moved once. That requires that no more slices are taken than
// there are.
bool SliceInsteadOfGather(Rewriter* r, size_t n) {
  const Node node = r->node(n);
  const auto pick = PickOf(*r, node);
  if (!pick) return false;
  const auto transpose = r->Producer(node.inputs[0], "Transpose");
  const Perm perm = transpose ? PermOf(*r, r->node(*transpose)) : Perm();
  if (perm.empty() ||
      static_cast<int64_t>(r->uses(node.inputs[0])) > r->type(node.inputs[0]).dims[pick->axis]) {
    const ValueId slice = AddSlice(r, n, node.inputs[0], *pick);
    return slice != kNoValue && r->Replace(n, "Squeeze", {slice}, AxisAttr(pick->axis));
  }
  const int source = perm[static_cast<size_t>(pick->axis)];
  Perm rest;
  for (int from : perm) {
    if (from != source) rest.push_back(from > source ? from - 1 : from);
  }
  const ValueId slice = AddSlice(r, n, r->node(*transpose).inputs[0], {source, pick->index});
  const ValueId part =
      slice == kNoValue ? kNoValue : r->Add(n, "Squeeze", {slice}, AxisAttr(source));
  return part != kNoValue && r->Replace(n, "Transpose", {part}, PermAttr(rest));
}

bool SimplifyViewOfTranspose(Rewriter* r, size_t n) {
  return GatherInsteadOfShuffle(r, n) || DropOnesBeforeTranspose(r, n) ||
         SplitBeforeTranspose(r, n);
}

bool SimplifyTranspose(Rewriter* r, size_t n) {
  const ValueId x = r->node(n).inputs[0], y = r->node(n).outputs[0];
  const Perm perm = PermOf(*r, r->node(n));
  if (perm.empty() || !r->type(x).rank_known) return false;
  if (IsIdentity(perm)) return r->Forward(n, x);
  if (const auto p = r->Producer(x, "Transpose")) {
    const Perm before = PermOf(*r, r->node(*p));
    if (before.size() != perm.size()) return false;
    Perm both;
    for (int from : perm) both.push_back(before[static_cast<size_t>(from)]);
    const ValueId source = r->node(*p).inputs[0];
    if (IsIdentity(both) && r->Forward(n, source)) return true;
    return r->Replace(n, "Transpose", {source}, PermAttr(both));
  }
  if (!MovesOnlyOnes(r->type(x), perm))
    return JoinAcrossReshape(r, n, perm) || LeaveOnesInPlace(r, n, perm);
  auto attrs = ReshapeAttrs(r->type(x), r->type(y));
  return attrs && r->Replace(n, "Reshape", {x}, *std::move(attrs));
}

}  // namespace msrt
