// Proposals for ops whose inputs and attributes must fit each other. They are mostly valid;
// inference decides.
#include <algorithm>
#include <numeric>

#include "tests/fuzz/grower.h"

namespace msrt::testing {
namespace {

constexpr DTypeSet kMovedTypes = kComputeTypes | kF8Types;

Ints Filled(size_t count, int64_t value) { return Ints(count, value); }

// ---- windows ------------------------------------------------------------------------------------

// Kernel, strides, dilations and pads for `space` axes.
Ints AddWindow(Grower& g, const Dims& x, Proposal* p) {
  const auto space = static_cast<size_t>(x.rank() - 2);
  Ints kernel, pads(2 * space), strides, dilations;
  for (size_t i = 0; i < space; ++i) {
    kernel.push_back(g.choices.Between(1, 3));
    strides.push_back(g.choices.Between(1, 2));
    dilations.push_back(g.choices.OneIn(3) ? 2 : 1);
    pads[i] = g.choices.Between(0, kernel.back() - 1);
    pads[space + i] = g.choices.Between(0, kernel.back() - 1);
  }
  if (g.choices.OneIn(2)) p->attrs.Set("strides", strides);
  if (g.choices.OneIn(3)) p->attrs.Set("dilations", dilations);
  constexpr std::string_view kAuto[] = {"SAME_UPPER", "SAME_LOWER", "VALID"};
  if (g.choices.OneIn(4)) p->attrs.Set("auto_pad", std::string(g.choices.Of(kAuto)));
  else if (g.choices.OneIn(2)) p->attrs.Set("pads", pads);
  return kernel;
}

void AddActivation(Grower& g, const OpDef& def, Proposal* p) {
  for (const AttrDef& attr : def.attrs) {
    if (attr.name == "activation")
      p->attrs.Set("activation", std::string(g.choices.Of(attr.choices)));
    if (attr.name == "activation_alpha") p->attrs.Set("activation_alpha", g.choices.Unit());
    if (attr.name == "activation_beta") p->attrs.Set("activation_beta", 1 + g.choices.Unit());
  }
}

Proposal Convolution(Grower& g, const OpDef& def) {
  Proposal p;
  const ValueId x = g.Any(kFloatTypes, 3, 5);
  const DType dtype = g.TypeOf(x).dtype;
  const Dims dims = g.DimsOf(x);
  const Ints kernel = AddWindow(g, dims, &p);
  const int64_t group = dims[1] > 0 && g.choices.OneIn(4) ? dims[1] : 1,
                out = group * g.choices.Between(1, 4);
  p.attrs.Set("group", group);
  const bool transposed = def.name == "ConvTranspose";
  Dims w = transposed ? Dims{dims[1], out / group} : Dims{out, dims[1] / group};
  for (int64_t k : kernel) w.push_back(k);
  p.inputs = {x, g.Constant(RandomTensor(g.choices, dtype, w))};
  if (g.choices.OneIn(5)) p.inputs[1] = g.New(dtype, w);
  if (g.choices.OneIn(2)) p.inputs.push_back(g.New(dtype, {out}));
  if (def.name == "FusedConv") AddActivation(g, def, &p);
  return p;
}

Proposal Pool(Grower& g, const OpDef& def) {
  Proposal p;
  const ValueId x = g.Any(def.inputs[0].types, 3, 5);
  p.inputs = {x};
  p.attrs.Set("kernel_shape", AddWindow(g, g.DimsOf(x), &p));
  if (g.choices.OneIn(3)) p.attrs.Set("ceil_mode", 1);
  if (def.name == "LpPool") p.attrs.Remove("auto_pad"), p.attrs.Set("p", g.choices.Between(1, 3));
  if (def.name == "AveragePool" && g.choices.OneIn(2)) p.attrs.Set("count_include_pad", 1);
  if (def.name == "MaxPool") p.outputs = static_cast<size_t>(g.choices.Between(1, 2));
  return p;
}

Proposal Resize(Grower& g, const OpDef& def) {
  Proposal p;
  const ValueId x = g.Any(kFloatTypes | DTypeSet{DType::kU8, DType::kI8, DType::kI32}, 1, 4);
  p.inputs = {x};
  for (const AttrDef& attr : def.attrs) {
    if (!attr.choices.empty() && attr.name != "keep_aspect_ratio_policy" && g.choices.OneIn(2)) {
      p.attrs.Set(attr.name, std::string(g.choices.Of(attr.choices)));
    }
  }
  const bool crop = p.attrs.Find("coordinate_transformation_mode") != nullptr &&
                    std::get<std::string>(*p.attrs.Find("coordinate_transformation_mode")) ==
                        "tf_crop_and_resize";
  if (crop) p.attrs.Remove("coordinate_transformation_mode");
  Ints sizes;
  std::vector<double> scales;
  for (int i = 0; i < g.DimsOf(x).rank(); ++i) {
    const bool same = i < 2 && g.DimsOf(x).rank() > 2;
    sizes.push_back(same ? g.DimsOf(x)[i] : g.choices.Between(1, 8));
    scales.push_back(same ? 1 : 0.5 * static_cast<double>(g.choices.Between(1, 5)));
  }
  if (g.choices.OneIn(2)) p.attrs.Set("sizes", sizes);
  else p.attrs.Set("scales", scales);
  return p;
}

Proposal Blocks(Grower& g, const OpDef& def) {
  Proposal p;
  const int64_t block = g.choices.Between(1, 3);
  p.inputs = {g.choices.OneIn(2)
                  ? g.Any(kMovedTypes, 4, 4)
                  : g.New(g.choices.TypeOf(kMovedTypes), def.name == "DepthToSpace"
                                                             ? Dims{1, 2 * block * block, 2, 3}
                                                             : Dims{1, 2, 2 * block, 3 * block})};
  p.attrs.Set("blocksize", block);
  if (def.name == "DepthToSpace" && g.choices.OneIn(2)) p.attrs.Set("mode", std::string("CRD"));
  return p;
}

// ---- products and normalizations ----------------------------------------------------------------

Proposal MatMul(Grower& g, const OpDef& def) {
  Proposal p;
  const bool flat = def.name == "Gemm", fused = def.name == "FusedMatMul";
  const ValueId a = g.Any(def.inputs[0].types, flat ? 2 : 1, flat ? 2 : 4);
  const DType dtype = g.TypeOf(a).dtype;
  const Dims dims = g.DimsOf(a);
  const bool turn_a = (flat || fused) && dims.rank() >= 2 && g.choices.OneIn(3),
             turn_b = (flat || fused) && g.choices.OneIn(3);
  const int64_t rows = dims.rank() < 2 ? 1 : dims[dims.rank() - (turn_a ? 1 : 2)],
                inner = dims[dims.rank() - (turn_a ? 2 : 1)];
  const int64_t columns = g.choices.Between(1, 6);
  Dims b = turn_b ? Dims{columns, inner} : Dims{inner, columns};
  if (!flat && dims.rank() > 2 && g.choices.OneIn(2)) {
    for (int i = dims.rank() - 3; i >= 0; --i) b.insert(0, g.choices.OneIn(3) ? 1 : dims[i]);
  }
  p.inputs = {a, g.New(dtype, b)};
  if (turn_a) p.attrs.Set("transA", 1);
  if (turn_b) p.attrs.Set("transB", 1);
  if (flat || fused) p.attrs.Set("alpha", g.choices.Unit() + 0.5);
  if (flat && g.choices.OneIn(2))
    p.inputs.push_back(g.New(dtype, g.Broadcastable({rows, columns})));
  if (fused && g.choices.OneIn(2)) p.inputs.push_back(g.New(dtype, {columns}));
  if (fused) AddActivation(g, def, &p);
  return p;
}

// X and parameters of one element a channel.
Proposal PerChannel(Grower& g, const OpDef& def) {
  Proposal p;
  const ValueId x = g.Any(kFloatTypes, 3, 4);
  const DType dtype = g.TypeOf(x).dtype;
  const int64_t channels = g.DimsOf(x)[1];
  p.inputs = {x};
  for (size_t i = 1; i < def.inputs.size(); ++i) {
    std::vector<double> values(static_cast<size_t>(channels));
    for (double& v : values) v = 0.25 + g.choices.Unit();  // a variance is positive
    p.inputs.push_back(g.Constant(FloatTensor(dtype, {channels}, values)));
  }
  if (def.name == "GroupNormalization")
    p.attrs.Set("num_groups", channels > 0 && g.choices.OneIn(2) ? channels : 1);
  p.attrs.Set("epsilon", 1e-3);
  if (def.name == "FusedBatchNormalization") AddActivation(g, def, &p);
  return p;
}

Proposal Trailing(Grower& g, const OpDef& def) {
  Proposal p;
  const ValueId x = g.Any(kFloatTypes, 1, 4);
  const Dims dims = g.DimsOf(x);
  const int64_t axis = g.Axis(dims.rank());
  Dims scale;
  for (int i = static_cast<int>(axis < 0 ? axis + dims.rank() : axis); i < dims.rank(); ++i)
    scale.push_back(dims[i]);
  p.inputs = {x, g.New(g.TypeOf(x).dtype, scale)};
  if (def.name == "LayerNormalization" && g.choices.OneIn(2))
    p.inputs.push_back(g.New(g.TypeOf(x).dtype, scale));
  p.attrs = {{"axis", axis}, {"epsilon", 1e-3}};
  if (def.name == "LayerNormalization") p.outputs = static_cast<size_t>(g.choices.Between(1, 3));
  return p;
}

Proposal Attention(Grower& g, const OpDef&) {
  Proposal p;
  const DType dtype = g.choices.TypeOf(kFloatTypes);
  const int64_t batch = g.choices.Between(1, 2), heads = g.choices.Between(1, 2),
                shared = g.choices.Between(1, 2);
  const int64_t rows = g.choices.Between(1, 5), keys = g.choices.Between(1, 5),
                width = g.choices.Between(1, 4);
  p.inputs = {g.New(dtype, {batch, heads * shared, rows, width}),
              g.New(dtype, {batch, heads, keys, width}), g.New(dtype, {batch, heads, keys, 3})};
  if (g.choices.OneIn(3))
    p.inputs.push_back(g.New(g.choices.OneIn(2) ? DType::kBool : dtype, {rows, keys}));
  if (g.choices.OneIn(2)) p.attrs.Set("is_causal", 1);
  if (g.choices.OneIn(3)) p.attrs.Set("scale", 0.5);
  return p;
}

// ---- shapes -------------------------------------------------------------------------------------

Proposal Reshape(Grower& g, const OpDef&) {
  Proposal p;
  const ValueId x = g.Any(kAllTypes);
  p.inputs = {x};
  // Merges two neighbours, or leaves one of the dims to be inferred.
  const Dims dims = g.DimsOf(x);
  Ints shape(dims.begin(), dims.end());
  if (shape.size() >= 2 && g.choices.OneIn(2)) {
    const size_t at = g.choices.Below(shape.size() - 1);
    shape[at] *= shape[at + 1];
    shape.erase(shape.begin() + static_cast<ptrdiff_t>(at) + 1);
  } else {
    shape.insert(shape.begin() + static_cast<ptrdiff_t>(g.choices.Below(shape.size() + 1)), 1);
  }
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) p.attrs.Set("allowzero", 1);
  else if (g.choices.OneIn(2)) shape[g.choices.Below(shape.size())] = -1;
  g.SetList("shape", 1, shape, &p);
  return p;
}

Proposal Squeeze(Grower& g, const OpDef&) {
  Proposal p;
  const ValueId x = g.Any(kAllTypes, 0, 5);
  p.inputs = {x};
  Ints axes;
  for (int i = 0; i < g.DimsOf(x).rank(); ++i) {
    if (g.DimsOf(x)[i] == 1 && g.choices.OneIn(2)) axes.push_back(i);
  }
  if (!g.choices.OneIn(3)) g.SetList("axes", 1, axes, &p);
  return p;
}

Proposal Unsqueeze(Grower& g, const OpDef&) {
  Proposal p;
  const ValueId x = g.Any(kAllTypes, 0, 4);
  p.inputs = {x};
  g.SetList("axes", 1, {g.Axis(g.DimsOf(x).rank() + 1)}, &p);
  return p;
}

Proposal Expand(Grower& g, const OpDef&) {
  Proposal p;
  const Dims to = g.SmallDims(static_cast<int>(g.choices.Between(1, 4)));
  p.inputs = {g.New(g.choices.TypeOf(kMovedTypes), g.Broadcastable(to))};
  g.SetList("shape", 1, Ints(to.begin(), to.end()), &p);
  return p;
}

Proposal ConstantOfShape(Grower& g, const OpDef&) {
  Proposal p;
  const Dims dims = g.SmallDims(static_cast<int>(g.choices.Between(0, 3)));
  g.SetList("shape", 0, Ints(dims.begin(), dims.end()), &p);
  if (g.choices.OneIn(2))
    p.attrs.Set("value", RandomTensor(g.choices, g.choices.TypeOf(kMovedTypes), {1}));
  return p;
}

Proposal Range(Grower& g, const OpDef& def) {
  const DType dtype = g.choices.TypeOf(def.inputs[0].types);
  const int64_t delta = g.choices.OneIn(2) ? 2 : -1;
  Proposal p;
  for (int64_t v : {int64_t{1}, 1 + delta * g.choices.Between(0, 6), delta}) {
    const auto number = static_cast<double>(v);
    if (IsFloat(dtype))
      p.inputs.push_back(g.Constant(FloatTensor(dtype, {}, std::span(&number, 1))));
    else p.inputs.push_back(g.Constant(RandomIndices(g.choices, dtype, {}, v, v)));
  }
  return p;
}

// ---- movement -----------------------------------------------------------------------------------

Proposal Transpose(Grower& g, const OpDef&) {
  Proposal p;
  const ValueId x = g.Any(kMovedTypes, 0, 5);
  p.inputs = {x};
  Ints perm(g.DimsOf(x).size());
  std::iota(perm.begin(), perm.end(), 0);
  for (size_t i = perm.size(); i > 1; --i) std::swap(perm[i - 1], perm[g.choices.Below(i)]);
  if (!g.choices.OneIn(4)) p.attrs.Set("perm", perm);
  return p;
}

Proposal Concat(Grower& g, const OpDef&) {
  Proposal p;
  const ValueId x = g.Any(kMovedTypes, 1, 4);
  const Dims dims = g.DimsOf(x);
  const int64_t axis = g.Axis(dims.rank());
  p.inputs = {x};
  for (int64_t i = g.choices.Between(0, 2); i > 0; --i) {
    Dims other = dims;
    other[static_cast<int>(axis < 0 ? axis + dims.rank() : axis)] = g.choices.Between(0, 4);
    p.inputs.push_back(g.New(g.TypeOf(x).dtype, other));
  }
  std::swap(p.inputs[0], p.inputs[g.choices.Below(p.inputs.size())]);
  p.attrs.Set("axis", axis);
  return p;
}

Proposal Split(Grower& g, const OpDef&) {
  Proposal p;
  const ValueId x = g.Any(kMovedTypes, 1, 4);
  const Dims dims = g.DimsOf(x);
  const int64_t axis = g.Axis(dims.rank()),
                extent = dims[static_cast<int>(axis < 0 ? axis + dims.rank() : axis)];
  p.inputs = {x};
  p.attrs.Set("axis", axis);
  p.outputs = static_cast<size_t>(g.choices.Between(1, 3));
  if (g.choices.OneIn(2)) {
    p.attrs.Set("num_outputs", static_cast<int64_t>(p.outputs));
    return p;
  }
  Ints sizes = Filled(p.outputs, 0);
  for (int64_t i = 0; i < extent; ++i) ++sizes[g.choices.Below(sizes.size())];
  g.SetList("split", 1, sizes, &p);
  return p;
}

Proposal Slice(Grower& g, const OpDef&) {
  Proposal p;
  const ValueId x = g.Any(kMovedTypes, 1, 4);
  Ints starts, ends, axes, steps;
  for (int i = 0; i < g.DimsOf(x).rank(); ++i) {
    if (g.choices.OneIn(3)) continue;
    axes.push_back(i);
    starts.push_back(g.choices.Between(-6, 6));
    ends.push_back(g.choices.OneIn(4) ? INT64_MAX : g.choices.Between(-6, 9));
    steps.push_back(g.choices.OneIn(3) ? g.choices.Between(-3, -1) : g.choices.Between(1, 3));
  }
  p.inputs = {x};
  p.attrs = {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", steps}};
  return p;
}

Proposal Tile(Grower& g, const OpDef&) {
  Proposal p;
  const ValueId x = g.Any(kMovedTypes);
  Ints repeats;
  for (int i = 0; i < g.DimsOf(x).rank(); ++i)
    repeats.push_back(g.choices.OneIn(20) ? 0 : g.choices.Between(1, 3));
  p.inputs = {x};
  g.SetList("repeats", 1, repeats, &p);
  return p;
}

Proposal ReverseSequence(Grower& g, const OpDef&) {
  Proposal p;
  const ValueId x = g.Any(kMovedTypes, 2, 4);
  const int64_t time = g.choices.Between(0, 1);
  const Dims dims = g.DimsOf(x);
  p.inputs = {x, g.Indices({dims[static_cast<int>(1 - time)]}, 0, dims[static_cast<int>(time)])};
  p.attrs = {{"time_axis", time}, {"batch_axis", 1 - time}};
  return p;
}

Proposal Pad(Grower& g, const OpDef& def) {
  Proposal p;
  const ValueId x = g.Any(kMovedTypes, 1, 4);
  const auto rank = g.DimsOf(x).size();
  const auto mode = std::string(g.choices.Of(def.attrs[0].choices));
  Ints pads(2 * rank);
  for (int64_t& pad : pads) pad = g.choices.Between(-1, 2);
  p.inputs = {x};
  p.attrs.Set("mode", mode);
  g.SetList("pads", 1, pads, &p);
  if (mode == "constant" && g.choices.OneIn(2)) {
    p.inputs.resize(2, kNoValue);
    p.inputs.push_back(g.New(g.TypeOf(x).dtype, {}));
  }
  return p;
}

// ---- indices ------------------------------------------------------------------------------------

struct AxisChoice {
  int64_t given;
  int at;
};
AxisChoice PickAxis(Grower& g, const Dims& dims) {
  const int64_t axis = g.Axis(dims.rank());
  return {axis, static_cast<int>(axis < 0 ? axis + dims.rank() : axis)};
}

Proposal Gather(Grower& g, const OpDef&) {
  Proposal p;
  const ValueId x = g.Any(kMovedTypes, 1, 4);
  const AxisChoice axis = PickAxis(g, g.DimsOf(x));
  const int64_t extent = g.DimsOf(x)[axis.at];
  p.inputs = {
      x, g.Indices(extent == 0 ? Dims{0} : g.SmallDims(static_cast<int>(g.choices.Between(0, 2))),
                   -extent, std::max<int64_t>(extent - 1, -extent))};
  p.attrs.Set("axis", axis.given);
  return p;
}

Proposal ElementIndices(Grower& g, const OpDef& def) {
  Proposal p;
  const ValueId x = g.Any(kMovedTypes, 1, 4);
  const Dims dims = g.DimsOf(x);
  const AxisChoice axis = PickAxis(g, dims);
  Dims indices = dims;
  if (dims[axis.at] != 0) indices[axis.at] = g.choices.Between(0, 4);
  p.inputs = {
      x, g.Indices(indices, -dims[axis.at], std::max<int64_t>(dims[axis.at] - 1, -dims[axis.at]))};
  p.attrs.Set("axis", axis.given);
  if (def.name == "ScatterElements") {
    p.inputs.push_back(g.New(g.TypeOf(x).dtype, indices));
    if (g.choices.OneIn(2))
      p.attrs.Set("reduction", std::string(g.choices.Of(def.attrs[1].choices)));
  }
  return p;
}

Proposal TupleIndices(Grower& g, const OpDef& def) {
  Proposal p;
  const ValueId x = g.Any(kMovedTypes, 1, 3);
  const Dims dims = g.DimsOf(x);
  const int64_t length = g.choices.Between(1, dims.rank()),
                tuples = dims.elements() == 0 ? 0 : g.choices.Between(0, 4);
  int64_t least = 9;
  for (int i = 0; i < length; ++i) least = std::min(least, dims[i]);
  p.inputs = {x, g.Indices({tuples, length}, -least, std::max(least - 1, -least))};
  if (def.name == "ScatterND") {
    Dims updates{tuples};
    for (int i = static_cast<int>(length); i < dims.rank(); ++i) updates.push_back(dims[i]);
    p.inputs.push_back(g.New(g.TypeOf(x).dtype, updates));
    if (g.choices.OneIn(2))
      p.attrs.Set("reduction", std::string(g.choices.Of(def.attrs[0].choices)));
  }
  return p;
}

Proposal OneHot(Grower& g, const OpDef&) {
  Proposal p;
  p.inputs = {g.Any(kNumberTypes, 0, 2), kNoValue, g.New(g.choices.TypeOf(kMovedTypes), {2})};
  p.attrs.Set("depth", g.choices.Between(0, 5));
  p.attrs.Set("axis", g.Axis(g.DimsOf(p.inputs[0]).rank() + 1));
  return p;
}

Proposal TopK(Grower& g, const OpDef&) {
  Proposal p;
  const ValueId x = g.Any(kNumberTypes, 1, 4);
  const AxisChoice axis = PickAxis(g, g.DimsOf(x));
  p.inputs = {x};
  p.attrs.Set("axis", axis.given);
  g.SetNumber("k", 1, g.choices.Between(0, g.DimsOf(x)[axis.at]), &p);
  if (g.choices.OneIn(2)) p.attrs.Set("largest", 0);
  p.outputs = 2;
  return p;
}

Proposal Reduce(Grower& g, const OpDef& def) {
  Proposal p;
  const ValueId x = g.Any(def.inputs[0].types);
  Ints axes;
  for (int i = 0; i < g.DimsOf(x).rank(); ++i) {
    if (g.choices.OneIn(2)) axes.push_back(g.choices.OneIn(2) ? i : i - g.DimsOf(x).rank());
  }
  p.inputs = {x};
  if (g.choices.OneIn(2)) p.attrs.Set("keepdims", 0);
  if (g.choices.OneIn(4)) p.attrs.Set("noop_with_empty_axes", 1);
  if (!g.choices.OneIn(4)) g.SetList("axes", 1, axes, &p);
  return p;
}

Proposal CumSum(Grower& g, const OpDef& def) {
  Proposal p;
  const ValueId x = g.Any(def.inputs[0].types, 1, 4);
  p.inputs = {x};
  g.SetNumber("axis", 1, g.Axis(g.DimsOf(x).rank()), &p);
  if (g.choices.OneIn(2)) p.attrs.Set("exclusive", 1);
  if (g.choices.OneIn(2)) p.attrs.Set("reverse", 1);
  return p;
}

// ---- states -------------------------------------------------------------------------------------

Proposal StateRead(Grower& g, const OpDef&) {
  Proposal p;
  const ConstTensor initial =
      RandomTensor(g.choices, g.choices.TypeOf(kComputeTypes), g.SmallDims(2));
  auto& states = g.result.module.states;
  p.attrs = {{"slot", static_cast<int64_t>(states.size())},
             {"dtype", initial.dtype},
             {"dims", Ints(initial.dims.begin(), initial.dims.end())}};
  states.push_back({StrCat("s", states.size()), initial.type(), initial});
  return p;
}

Proposal StateWrite(Grower& g, const OpDef&) {
  Proposal p;
  const ValueId x = g.Any(kComputeTypes);
  auto& states = g.result.module.states;
  p.inputs = {x};
  p.attrs = {{"slot", static_cast<int64_t>(states.size())}};
  p.outputs = 0;
  states.push_back({StrCat("s", states.size()), g.TypeOf(x),
                    RandomTensor(g.choices, g.TypeOf(x).dtype, g.DimsOf(x))});
  return p;
}

struct Row {
  std::string_view op;
  Recipe recipe;
};
constexpr Row kRecipes[] = {
    {"Conv", Convolution},
    {"ConvTranspose", Convolution},
    {"FusedConv", Convolution},
    {"MaxPool", Pool},
    {"AveragePool", Pool},
    {"LpPool", Pool},
    {"Resize", Resize},
    {"DepthToSpace", Blocks},
    {"SpaceToDepth", Blocks},
    {"MatMul", MatMul},
    {"Gemm", MatMul},
    {"FusedMatMul", MatMul},
    {"BatchNormalization", PerChannel},
    {"FusedBatchNormalization", PerChannel},
    {"InstanceNormalization", PerChannel},
    {"GroupNormalization", PerChannel},
    {"LayerNormalization", Trailing},
    {"RMSNormalization", Trailing},
    {"Attention", Attention},
    {"FusedAttention", Attention},
    {"Reshape", Reshape},
    {"Squeeze", Squeeze},
    {"Unsqueeze", Unsqueeze},
    {"Expand", Expand},
    {"ConstantOfShape", ConstantOfShape},
    {"Range", Range},
    {"Transpose", Transpose},
    {"Concat", Concat},
    {"Split", Split},
    {"Slice", Slice},
    {"Tile", Tile},
    {"ReverseSequence", ReverseSequence},
    {"Pad", Pad},
    {"Gather", Gather},
    {"GatherElements", ElementIndices},
    {"ScatterElements", ElementIndices},
    {"GatherND", TupleIndices},
    {"ScatterND", TupleIndices},
    {"OneHot", OneHot},
    {"TopK", TopK},
    {"CumSum", CumSum},
    {"StateRead", StateRead},
    {"StateWrite", StateWrite},
};

}  // namespace

Recipe RecipeFor(const OpDef& def) {
  const auto* row = std::find_if(std::begin(kRecipes), std::end(kRecipes),
                                 [&](const Row& r) { return r.op == def.name; });
  if (row != std::end(kRecipes)) return row->recipe;
  return def.name.starts_with("Reduce") ? Reduce : nullptr;
}

}  // namespace msrt::testing
