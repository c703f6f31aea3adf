// Gradients of ops that move elements.
#include <algorithm>
#include <limits>

#include "core/region/slice.h"
#include "ops/grad_builder.h"
#include "ops/grad_positions.h"
#include "ops/gradients.h"
#include "ops/infer.h"

namespace msrt {

// The inverse permutation. Without `perm` the dims are reversed, which is its own inverse.
Status GradTranspose(GradBuilder& g) {
  const auto perm = g.op().Ints("perm");
  if (!g.op().Has("perm")) {
    g.Set(0, g.Add("Transpose", {g.grad()}));
    return OkStatus();
  }
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  g.Set(0, g.Add("Transpose", {g.grad()}, {{"perm", std::move(inverse)}}));
  return OkStatus();
}

Status GradConcat(GradBuilder& g) {
  const Type out = g.type(g.output(0));
  if (!out.rank_known) return Unsupported("the rank of the output is not known; declare it");
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(g.op().Int("axis"), out.rank()));
  const size_t count = g.op().input_count();
  std::vector<int64_t> sizes;
  DimList dims(g);
  for (size_t i = 0; i < count; ++i) {
    const Type& in = g.op().input(i);
    if (!in.rank_known) return Unsupported("the rank of input ", i, " is not known; declare it");
    sizes.push_back(in.dims[axis]);
    dims.Add(g.input(i), axis);
  }
  if (count == 1) {
    g.Set(0, g.grad());
    return OkStatus();
  }
  const bool known = std::all_of(sizes.begin(), sizes.end(), IsKnown);
  std::vector<ValueId> inputs = {g.grad()};
  AttrList attrs = {{"axis", int64_t{axis}}};
  if (known) attrs.Set("split", std::move(sizes));
  else inputs.push_back(dims.list());
  const auto parts = g.AddNode("", "Split", std::move(inputs), std::move(attrs), count);
  for (size_t i = 0; i < count; ++i) {
    if (g.wants(i)) g.Set(i, parts[i]);
  }
  return OkStatus();
}

// A part that nothing depends on is a part of zeros.
Status GradSplit(GradBuilder& g) {
  const size_t count = g.op().output_count();
  std::vector<ValueId> zeros, parts;
  for (size_t o = 0; o < count; ++o) {
    if (g.grad(o) == kNoValue && zeros.empty()) {
      std::vector<ValueId> inputs = {g.Zeros(g.input(0))};
      if (g.has_input(1)) inputs.push_back(g.input(1));
      zeros = g.AddNode("", "Split", std::move(inputs), g.op().attrs(), count);
    }
    parts.push_back(g.grad(o) != kNoValue ? g.grad(o) : zeros[o]);
  }
  g.Set(0, g.Add("Concat", std::move(parts), {{"axis", g.op().Int("axis")}}));
  return OkStatus();
}

namespace {

// `grad` with `step` - 1 zeros after each element of `axis`.
ValueId Dilated(GradBuilder& g, ValueId grad, int axis, int64_t step) {
  if (!g.ok()) return kNoValue;
  const int rank = g.type(grad).rank();
  std::vector<int64_t> pads(2 * (static_cast<size_t>(rank) + 1), 0);
  pads[static_cast<size_t>(rank + 1 + axis + 1)] = step - 1;
  const ValueId padded = g.Add("Pad", {WithAxes(g, grad, {axis + 1})}, {{"pads", std::move(pads)}});
  DimList dims(g);
  dims.Add(grad, 0, axis).Add(g.type(grad).dims[axis] * step).Add(grad, axis + 1, rank);
  return ReshapeToDims(g, padded, dims);
}

// Where all amounts are known, the gradient is padded with zeros. Sets `*result` to kNoValue where
// they are not.
Status PadSliced(GradBuilder& g, ValueId* result) {
  *result = kNoValue;
  const Type x = g.type(g.input(0)), y = g.type(g.output(0));
  const auto starts = IntsAttrOrInput(g.op(), "starts", 1),
             ends = IntsAttrOrInput(g.op(), "ends", 2), axes = IntsAttrOrInput(g.op(), "axes", 3),
             steps = IntsAttrOrInput(g.op(), "steps", 4);
  if (!starts || !ends || !axes || !steps || !x.rank_known || x.rank() == kMaxRank)
    return OkStatus();
  MSRT_ASSIGN_OR_RETURN(std::vector<int> listed, NormalizeAxes(*axes, x.rank()));
  for (size_t i = 0; axes->empty() && i < starts->size(); ++i)
    listed.push_back(static_cast<int>(i));
  const auto rank = static_cast<size_t>(x.rank());
  std::vector<int64_t> pads(2 * rank, 0);
  ValueId grad = g.grad();
  for (size_t i = 0; i < listed.size(); ++i) {
    const int axis = listed[i];
    if (!IsKnown(x.dims[axis])) return OkStatus();
    SliceAxis s =
        NormalizeSlice((*starts)[i], (*ends)[i], steps->empty() ? 1 : (*steps)[i], x.dims[axis]);
    if (s.count == 0 || (s.count > 1 && s.step != 1 && s.step != -1 && !y.concrete()))
      return OkStatus();
    if (s.count == 1) s.step = 1;
    if (s.step < 0) {
      grad = PartOf(g, grad, axis, -1, std::numeric_limits<int64_t>::min(), -1);
      s.start += (s.count - 1) * s.step;
      s.step = -s.step;
    }
    if (s.step > 1) grad = Dilated(g, grad, axis, s.step);
    pads[static_cast<size_t>(axis)] = s.start;
    pads[rank + static_cast<size_t>(axis)] = x.dims[axis] - s.start - s.count * s.step;
  }
  *result = g.Add("Pad", {grad}, {{"pads", std::move(pads)}});
  return OkStatus();
}

}  // namespace

Status GradSlice(GradBuilder& g) {
  ValueId padded;
  MSRT_RETURN_IF_ERROR(PadSliced(g, &padded));
  if (padded == kNoValue) {
    std::vector<ValueId> inputs = {PositionsOf(g, g.input(0))};
    for (size_t i = 1; i < g.op().input_count(); ++i) inputs.push_back(g.input(i));
    const ValueId positions = g.Add("Slice", std::move(inputs), g.op().attrs());
    padded = SumAtPositions(g, g.grad(), positions, g.input(0));
  }
  g.Set(0, padded);
  return OkStatus();
}

// Each axis is split into repetitions, which are summed, and elements. Where that would make too
// many axes, elements are summed by position.
Status GradTile(GradBuilder& g) {
  const Type x = g.type(g.input(0));
  std::vector<ValueId> inputs = {g.input(0)};
  if (g.has_input(1)) inputs.push_back(g.input(1));
  if (!x.rank_known || 2 * x.rank() > kMaxRank) {
    inputs[0] = PositionsOf(g, g.input(0));
    const ValueId positions = g.Add("Tile", std::move(inputs), g.op().attrs());
    g.Set(0, SumAtPositions(g, g.grad(), positions, g.input(0)));
    return OkStatus();
  }
  ValueId dims;
  if (const auto repeats = IntsAttrOrInput(g.op(), "repeats", 1)) {
    DimList list(g);
    for (int d = 0; d < x.rank(); ++d)
      list.Add((*repeats)[static_cast<size_t>(d)]).Add(g.input(0), d);
    dims = list.list();
  } else {
    const ValueId repeats_64 = g.Add("Cast", {g.input(1)}, {{"to", DType::kI64}});
    dims = g.Add(
        "Reshape",
        {Joined(g, {WithAxes(g, repeats_64, {1}), WithAxes(g, g.ShapeOf(g.input(0)), {1})}, 1),
         g.Ints({-1})});
  }
  const ValueId split = g.Add("Reshape", {g.grad(), dims}, {{"allowzero", int64_t{1}}});
  std::vector<int64_t> summed;
  for (int d = 0; d < x.rank(); ++d) summed.push_back(2 * d);
  g.Set(0, summed.empty() ? g.grad() : g.SumOver(split, std::move(summed), /*keep=*/false));
  return OkStatus();
}

// The part of a sequence that is reversed is reversed again.
Status GradReverseSequence(GradBuilder& g) {
  g.Set(0, g.Add("ReverseSequence", {g.grad(), g.input(1)}, g.op().attrs()));
  return OkStatus();
}

}  // namespace msrt
