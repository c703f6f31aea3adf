// Ops that reshape, reorder or slice elements.
#include <algorithm>
#include <limits>

#include "core/base/checked_math.h"
#include "tools/msconvert/mindir/import_rule.h"

namespace msrt::mindir_import {
namespace {

// Adds a node with a list: known lists become attributes, others inputs.
Status WithList(PrimitiveCall& call, std::string_view op, ValueId x, std::string_view argument,
                std::string_view attr, AttrList attrs = {}) {
  MSRT_ASSIGN_OR_RETURN(const Item item, call.Get(argument));
  if (auto known = call.KnownInts(item)) {
    attrs.Set(attr, *std::move(known));
    return call.SetResult(call.Add(op, {x}, std::move(attrs)));
  }
  MSRT_ASSIGN_OR_RETURN(const ValueId list, call.IntsTensor(argument));
  return call.SetResult(call.Add(op, {x, list}, std::move(attrs)));
}

// A zero means a dim of extent 0 here, not a dim of the input.
Status Reshape(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  return WithList(call, "Reshape", x, "shape", "shape", {{"allowzero", int64_t{1}}});
}

Status Flatten(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  return call.SetResult(call.Add("Flatten", {x}, {{"axis", int64_t{1}}}));
}

// Replaces the dims from start_dim to end_dim by one.
Status FlattenExt(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const int rank, call.Rank(x));
  MSRT_ASSIGN_OR_RETURN(const int first, call.Axis("start_dim", std::max(rank, 1), 0));
  MSRT_ASSIGN_OR_RETURN(const int last, call.Axis("end_dim", std::max(rank, 1), -1));
  std::vector<int64_t> shape;
  for (int i = 0; i < first; ++i) shape.push_back(0);
  shape.push_back(-1);
  for (int i = last + 1; i < rank; ++i) {
    MSRT_ASSIGN_OR_RETURN(const int64_t dim, call.KnownDim(x, i));
    shape.push_back(dim);
  }
  return call.SetResult(call.Add("Reshape", {x}, {{"shape", std::move(shape)}}));
}

Status ExpandDims(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  return WithList(call, "Unsqueeze", x, "axis", "axes");
}

Status Squeeze(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  AttrList attrs;
  if (call.Has("axis")) {
    MSRT_ASSIGN_OR_RETURN(std::vector<int64_t> axes, call.Ints("axis"));
    if (!axes.empty()) attrs.Set("axes", std::move(axes));
  }
  return call.SetResult(call.Add("Squeeze", {x}, std::move(attrs)));
}

Status Transpose(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const int rank, call.Rank(x));
  MSRT_ASSIGN_OR_RETURN(std::vector<int64_t> perm, call.Ints("dims"));
  for (int64_t& axis : perm) axis = axis < 0 ? axis + rank : axis;
  return call.SetResult(call.Add("Transpose", {x}, {{"perm", std::move(perm)}}));
}

// Exchanges two axes.
Status SwapAxes(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const int rank, call.Rank(x));
  MSRT_ASSIGN_OR_RETURN(const int a, call.Axis("dim0", rank));
  MSRT_ASSIGN_OR_RETURN(const int b, call.Axis("dim1", rank));
  std::vector<int64_t> perm;
  for (int i = 0; i < rank; ++i) perm.push_back(i == a ? b : i == b ? a : i);
  return call.SetResult(call.Add("Transpose", {x}, {{"perm", std::move(perm)}}));
}

Result<std::vector<ValueId>> TensorsOf(PrimitiveCall& call, std::string_view argument) {
  MSRT_ASSIGN_OR_RETURN(const Item tuple, call.Get(argument));
  std::vector<ValueId> values;
  if (!tuple.is(ItemKind::kTuple)) {
    MSRT_ASSIGN_OR_RETURN(const ValueId one, call.Tensor(argument));
    return std::vector<ValueId>{one};
  }
  for (const Item& p : *tuple.parts) {
    MSRT_ASSIGN_OR_RETURN(const ValueId value,
                          call.draft().Materialize(p, StrCat(call.name(), "/", argument)));
    values.push_back(value);
  }
  if (values.empty()) return InvalidModel("argument '", argument, "' is an empty tuple");
  return values;
}

Status Concat(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(std::vector<ValueId> parts, TensorsOf(call, "tensors"));
  MSRT_ASSIGN_OR_RETURN(const int64_t axis, call.Int("axis", 0));
  if (call.declared().kind == ItemKind::kTensor) {
    for (ValueId& v : parts) {
      MSRT_ASSIGN_OR_RETURN(v, call.Cast(v, call.declared().type.dtype));
    }
  }
  return call.SetResult(call.Add("Concat", std::move(parts), {{"axis", axis}}));
}

Status Stack(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(std::vector<ValueId> parts, TensorsOf(call, "tensors"));
  MSRT_ASSIGN_OR_RETURN(const int rank, call.Rank(parts[0]));
  MSRT_ASSIGN_OR_RETURN(const int axis, call.Axis("axis", rank + 1, 0));
  for (ValueId& v : parts) {
    MSRT_ASSIGN_OR_RETURN(v, call.Add("Unsqueeze", {v}, {{"axes", std::vector<int64_t>{axis}}}));
  }
  return call.SetResult(call.Add("Concat", std::move(parts), {{"axis", int64_t{axis}}}));
}

constexpr int64_t kMaxPieces = 1024;

Status Unstack(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const int rank, call.Rank(x));
  MSRT_ASSIGN_OR_RETURN(const int axis, call.Axis("axis", rank, 0));
  MSRT_ASSIGN_OR_RETURN(const int64_t count, call.KnownDim(x, axis));
  if (count < 1 || count > kMaxPieces) return Unsupported("a tensor in ", count, " pieces");
  MSRT_ASSIGN_OR_RETURN(
      std::vector<ValueId> parts,
      call.AddMany(
          "", "Split", {x},
          {{"axis", int64_t{axis}}, {"split", std::vector<int64_t>(static_cast<size_t>(count), 1)}},
          static_cast<size_t>(count)));
  for (ValueId& v : parts) {
    MSRT_ASSIGN_OR_RETURN(v, call.Add("Squeeze", {v}, {{"axes", std::vector<int64_t>{axis}}}));
  }
  return call.SetTupleResult(std::move(parts));
}

Status SetSplit(PrimitiveCall& call, ValueId x, int axis, std::vector<int64_t> sizes) {
  const size_t count = sizes.size();
  if (count < 1 || count > static_cast<size_t>(kMaxPieces))
    return Unsupported("a tensor in ", count, " pieces");
  MSRT_ASSIGN_OR_RETURN(
      std::vector<ValueId> parts,
      call.AddMany("", "Split", {x}, {{"axis", int64_t{axis}}, {"split", std::move(sizes)}},
                   count));
  return call.SetTupleResult(std::move(parts));
}

Status Split(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const int rank, call.Rank(x));
  MSRT_ASSIGN_OR_RETURN(const int axis, call.Axis("axis", rank, 0));
  MSRT_ASSIGN_OR_RETURN(const int64_t count, call.Int("output_num", 1));
  MSRT_ASSIGN_OR_RETURN(const int64_t dim, call.KnownDim(x, axis));
  if (count < 1 || count > kMaxPieces || dim % count != 0)
    return Unsupported("a dim of ", dim, " in ", count, " pieces");
  return SetSplit(call, x, axis, std::vector<int64_t>(static_cast<size_t>(count), dim / count));
}

// Pieces of one size, the last one smaller.
Status SplitTensor(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const int rank, call.Rank(x));
  MSRT_ASSIGN_OR_RETURN(const int axis, call.Axis("axis", rank, 0));
  MSRT_ASSIGN_OR_RETURN(const int64_t piece, call.Int("split_size"));
  MSRT_ASSIGN_OR_RETURN(const int64_t dim, call.KnownDim(x, axis));
  if (piece < 1 || dim / piece > kMaxPieces)
    return Unsupported("a dim of ", dim, " in pieces of ", piece);
  std::vector<int64_t> sizes(static_cast<size_t>(dim / piece), piece);
  if (dim % piece != 0) sizes.push_back(dim % piece);
  return SetSplit(call, x, axis, std::move(sizes));
}

Status SplitSizes(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const int rank, call.Rank(x));
  MSRT_ASSIGN_OR_RETURN(const int axis,
                        call.Axis(call.Has("split_dim") ? "split_dim" : "axis", rank, 0));
  MSRT_ASSIGN_OR_RETURN(std::vector<int64_t> sizes,
                        call.Ints(call.Has("size_splits") ? "size_splits" : "split_size"));
  return SetSplit(call, x, axis, std::move(sizes));
}

// There may be more repeats than dims: further dims are added before the first.
Status Tile(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const int rank, call.Rank(x));
  MSRT_ASSIGN_OR_RETURN(const Item item, call.Get("dims"));
  if (!call.KnownInts(item)) return WithList(call, "Tile", x, "dims", "repeats");
  MSRT_ASSIGN_OR_RETURN(std::vector<int64_t> repeats, call.Ints("dims"));
  if (repeats.size() > static_cast<size_t>(kMaxRank))
    return InvalidModel("argument 'dims' has ", repeats.size(), " numbers");
  const int missing = static_cast<int>(repeats.size()) - rank;
  if (missing > 0) {
    std::vector<int64_t> axes;
    for (int i = 0; i < missing; ++i) axes.push_back(i);
    MSRT_ASSIGN_OR_RETURN(x, call.Add("Unsqueeze", {x}, {{"axes", std::move(axes)}}));
  }
  if (missing < 0) repeats.insert(repeats.begin(), static_cast<size_t>(-missing), 1);
  return call.SetResult(call.Add("Tile", {x}, {{"repeats", std::move(repeats)}}));
}

// -1 keeps a dim.
Status BroadcastTo(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const Item item, call.Get("shape"));
  auto shape = call.KnownInts(item);
  if (!shape) return WithList(call, "Expand", x, "shape", "shape");
  for (int64_t& d : *shape) d = d < 0 ? 1 : d;
  return call.SetResult(call.Add("Expand", {x}, {{"shape", *std::move(shape)}}));
}

Status SliceAt(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> begin, call.Ints("begin"));
  MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> size, call.Ints("size"));
  if (begin.size() != size.size())
    return InvalidModel("arguments 'begin' and 'size' differ in length");
  std::vector<int64_t> ends, axes;
  for (size_t i = 0; i < begin.size(); ++i) {
    if (begin[i] < 0 || begin[i] > std::numeric_limits<int64_t>::max() / 2 ||
        size[i] > std::numeric_limits<int64_t>::max() / 2) {
      return InvalidModel("argument 'begin' is out of range");
    }
    ends.push_back(size[i] < 0 ? std::numeric_limits<int64_t>::max() : begin[i] + size[i]);
    axes.push_back(static_cast<int64_t>(i));
  }
  return call.SetResult(call.Add(
      "Slice", {x}, {{"starts", begin}, {"ends", std::move(ends)}, {"axes", std::move(axes)}}));
}

// Along one axis, from `start` to `end`.
Status SliceAlong(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  std::vector<ValueId> inputs{x};
  for (std::string_view argument : {"start", "end", "dim", "step"}) {
    if (argument == "step" && !call.Has(argument)) continue;
    MSRT_ASSIGN_OR_RETURN(const ValueId value, call.IntsTensor(argument));
    inputs.push_back(value);
  }
  return call.SetResult(call.Add("Slice", std::move(inputs)));
}

Status Narrow(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const int64_t axis, call.Int("dim"));
  MSRT_ASSIGN_OR_RETURN(const int64_t start, call.Int("start"));
  MSRT_ASSIGN_OR_RETURN(const int64_t length, call.Int("length"));
  int64_t end = 0;
  if (length < 0 || !CheckedAdd(start, length, &end))
    return InvalidModel("argument 'length' = ", length, " is out of range");
  if (start < 0 && end == 0) end = std::numeric_limits<int64_t>::max();
  return call.SetResult(call.Add("Slice", {x},
                                 {{"starts", std::vector<int64_t>{start}},
                                  {"ends", std::vector<int64_t>{end}},
                                  {"axes", std::vector<int64_t>{axis}}}));
}

// One list of a strided slice with its masks applied, in the order of the input's axes.
struct Strides {
  std::vector<int64_t> axes, starts, ends, steps, dropped, added;
};

Result<Strides> ReadStrides(PrimitiveCall& call, int rank) {
  MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> begin, call.Ints("begin"));
  MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> end, call.Ints("end"));
  MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> step, call.Ints("strides"));
  int64_t masks[5];
  constexpr std::string_view kMasks[] = {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask",
                                         "shrink_axis_mask"};
  for (size_t m = 0; m < 5; ++m) {
    MSRT_ASSIGN_OR_RETURN(masks[m], call.Int(kMasks[m], 0));
  }
  if (begin.size() != end.size() || begin.size() != step.size())
    return InvalidModel("arguments 'begin', 'end' and 'strides' differ in length");
  if (begin.size() > 2 * static_cast<size_t>(kMaxRank))
    return InvalidModel("argument 'begin' has ", begin.size(), " numbers");
  const auto set = [&](size_t mask, size_t i) { return ((masks[mask] >> i) & 1) != 0; };
  int taken = 0;  // axes of the input for entries other than an ellipsis and new axes
  for (size_t i = 0; i < begin.size(); ++i) taken += set(2, i) || set(3, i) ? 0 : 1;
  Strides s;
  int64_t axis = 0, result_axis = 0;
  for (size_t i = 0; i < begin.size(); ++i) {
    if (set(2, i)) {
      const int64_t skipped = std::max(0, rank - taken);
      axis += skipped;
      result_axis += skipped;
    } else if (set(3, i)) {
      s.added.push_back(result_axis++);
    } else {
      const bool shrink = set(4, i);
      constexpr int64_t kEnd = std::numeric_limits<int64_t>::max(),
                        kBegin = std::numeric_limits<int64_t>::min();
      s.axes.push_back(axis);
      s.steps.push_back(shrink ? 1 : step[i]);
      s.starts.push_back(!shrink && set(0, i) ? (step[i] > 0 ? 0 : kEnd) : begin[i]);
      if (shrink) s.ends.push_back(begin[i] == -1 || begin[i] == kEnd ? kEnd : begin[i] + 1);
      else s.ends.push_back(set(1, i) ? (step[i] > 0 ? kEnd : kBegin) : end[i]);
      if (shrink) s.dropped.push_back(axis);
      else ++result_axis;
      ++axis;
    }
  }
  return s;
}

// The bounds of some axes are computed; those of the others are masked.
Status StridedSliceAtRun(PrimitiveCall& call, ValueId x, int rank) {
  MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> step, call.Ints("strides"));
  for (std::string_view mask : {"ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
    MSRT_ASSIGN_OR_RETURN(const int64_t set, call.Int(mask, 0));
    if (set != 0)
      return Unsupported("argument '", mask, "' = ", set,
                         " with bounds that are computed; must be a constant slice");
  }
  if (step.size() > static_cast<size_t>(rank))
    return InvalidModel("argument 'strides' has ", step.size(), " numbers for ", rank, " axes");
  MSRT_ASSIGN_OR_RETURN(const int64_t begin_mask, call.Int("begin_mask", 0));
  MSRT_ASSIGN_OR_RETURN(const int64_t end_mask, call.Int("end_mask", 0));
  std::vector<int64_t> axes, steps;
  for (size_t i = 0; i < step.size(); ++i) {
    if (((begin_mask & end_mask) >> i & 1) != 0 && step[i] == 1) continue;
    axes.push_back(static_cast<int64_t>(i));
    steps.push_back(step[i]);
  }
  const auto bound = [&](std::string_view argument, int64_t mask, int64_t forward,
                         int64_t backward) -> Result<ValueId> {
    MSRT_ASSIGN_OR_RETURN(const ValueId all, call.IntsTensor(argument));
    MSRT_ASSIGN_OR_RETURN(const ValueId given,
                          call.Add("Gather", {all, call.IntList(axes)}, {{"axis", int64_t{0}}}));
    std::vector<int64_t> masked, instead;
    for (size_t i = 0; i < axes.size(); ++i) {
      masked.push_back(mask >> axes[i] & 1);
      instead.push_back(steps[i] > 0 ? forward : backward);
    }
    if (std::count(masked.begin(), masked.end(), 0) == static_cast<ptrdiff_t>(masked.size()))
      return given;
    MSRT_ASSIGN_OR_RETURN(const ValueId chosen, call.Cast(call.IntList(masked), DType::kBool));
    return call.Add("Where", {chosen, call.IntList(instead), given});
  };
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max(),
                    kBegin = std::numeric_limits<int64_t>::min();
  MSRT_ASSIGN_OR_RETURN(const ValueId starts, bound("begin", begin_mask, 0, kEnd));
  MSRT_ASSIGN_OR_RETURN(const ValueId ends, bound("end", end_mask, kEnd, kBegin));
  return call.SetResult(
      call.Add("Slice", {x, starts, ends, call.IntList(axes), call.IntList(steps)}));
}

Status StridedSlice(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const int rank, call.Rank(x));
  for (std::string_view argument : {"begin", "end"}) {
    MSRT_ASSIGN_OR_RETURN(const Item item, call.Get(argument));
    if (!call.KnownInts(item)) return StridedSliceAtRun(call, x, rank);
  }
  MSRT_ASSIGN_OR_RETURN(const Strides s, ReadStrides(call, rank));
  if (!s.axes.empty()) {
    MSRT_ASSIGN_OR_RETURN(
        x,
        call.Add("Slice", {x},
                 {{"starts", s.starts}, {"ends", s.ends}, {"axes", s.axes}, {"steps", s.steps}}));
  }
  if (!s.dropped.empty()) {
    MSRT_ASSIGN_OR_RETURN(x, call.Add("Squeeze", {x}, {{"axes", s.dropped}}));
  }
  if (!s.added.empty()) {
    MSRT_ASSIGN_OR_RETURN(x, call.Add("Unsqueeze", {x}, {{"axes", s.added}}));
  }
  call.SetResult(x);
  return OkStatus();
}

// Returns a tuple of dims; known ones are numbers.
Status ShapeOfTensor(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const int rank, call.Rank(x));
  Items parts;
  ValueId all = kNoValue;
  for (int i = 0; i < rank; ++i) {
    const int64_t dim = call.type(x).dims[i];
    if (IsKnown(dim)) {
      parts.push_back(Item::Integer(dim));
      continue;
    }
    if (all == kNoValue) {
      MSRT_ASSIGN_OR_RETURN(all, call.Add("Shape", {x}));
    }
    MSRT_ASSIGN_OR_RETURN(const ValueId one, call.Add("Gather", {all, call.Number(DType::kI64, i)},
                                                      {{"axis", int64_t{0}}}));
    parts.push_back(Item::Tensor(one));
  }
  MSRT_ASSIGN_OR_RETURN(Item tuple, Compound(ItemKind::kTuple, std::move(parts)));
  call.SetItemResult(std::move(tuple));
  return OkStatus();
}

Status TensorShape(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  return call.SetResult(call.Add("Shape", {x}));
}

// Makes a tensor of the numbers of a tuple.
Status TupleToTensor(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const Item tuple, call.Get("input"));
  if (!tuple.is(ItemKind::kTuple)) return call.SetResult(call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(std::vector<ValueId> parts, TensorsOf(call, "input"));
  const DType dtype = call.declared().kind == ItemKind::kTensor ? call.declared().type.dtype
                                                                : call.type(parts[0]).dtype;
  for (ValueId& v : parts) {
    MSRT_ASSIGN_OR_RETURN(v, call.Cast(v, dtype));
    MSRT_ASSIGN_OR_RETURN(v, call.Add("Reshape", {v}, {{"shape", std::vector<int64_t>{1}}}));
  }
  return call.SetResult(call.Add("Concat", std::move(parts), {{"axis", int64_t{0}}}));
}

// A list of numbers that are known only at run time stays a tensor, which every rule accepts too.
Status TensorToTuple(PrimitiveCall& call) { return call.SetResult(call.Tensor("input")); }

Status Reverse(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, call.Ints("axis"));
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max(),
                    kBegin = std::numeric_limits<int64_t>::min();
  return call.SetResult(call.Add("Slice", {x},
                                 {{"starts", std::vector<int64_t>(axes.size(), kEnd)},
                                  {"ends", std::vector<int64_t>(axes.size(), kBegin)},
                                  {"axes", axes},
                                  {"steps", std::vector<int64_t>(axes.size(), -1)}}));
}

Status Triangle(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const int64_t k, call.Int("diagonal", 0));
  return call.SetResult(
      call.Add("Trilu", {x}, {{"upper", int64_t{call.target() == "upper"}}, {"k", k}}));
}

constexpr std::string_view kInput = "input";

constexpr Rule kMovementRules[] = {
    {"Reshape", "input shape", Reshape},
    {"View", "input shape", Reshape},
    {"Flatten", kInput, Flatten},
    {"FlattenExt", "input start_dim end_dim", FlattenExt},
    {"ExpandDims", "input axis", ExpandDims},
    {"ExpandDimsView", "input axis", ExpandDims},
    {"Squeeze", "input axis", Squeeze},
    {"Transpose", "input dims", Transpose},
    {"TransposeView", "input dims", Transpose},
    {"TransposeExtView", "input dim0 dim1", SwapAxes},
    {"Concat", "tensors axis", Concat},
    {"Stack", "tensors axis", Stack},
    {"StackExt", "tensors axis", Stack},
    {"Unstack", "input axis", Unstack},
    {"UnstackExtView", "input axis", Unstack},
    {"Split", "input axis output_num", Split},
    {"SplitTensor", "input split_size axis", SplitTensor},
    {"SplitTensorView", "input split_size axis", SplitTensor},
    {"SplitWithSize", "input split_size axis", SplitSizes},
    {"SplitWithSizeView", "input split_size axis", SplitSizes},
    {"SplitV", "input size_splits split_dim", SplitSizes},
    {"Tile", "input dims", Tile},
    {"BroadcastTo", "input shape", BroadcastTo},
    {"BroadcastToView", "input shape", BroadcastTo},
    {"Slice", "input begin size", SliceAt},
    {"NarrowView", "input dim start length", Narrow},
    {"SliceExt", "input dim start end step", SliceAlong},
    {"SliceExtView", "input dim start end step", SliceAlong},
    {"StridedSlice",
     "input begin end strides begin_mask end_mask ellipsis_mask new_axis_mask shrink_axis_mask",
     StridedSlice},
    {"Shape", kInput, ShapeOfTensor},
    {"TensorShape", kInput, TensorShape},
    {"DynamicShape", kInput, TensorShape},
    {"TupleToTensor", "input dtype", TupleToTensor},
    {"TensorToTuple", kInput, TensorToTuple},
    {"ReverseV2", "input axis", Reverse},
    {"Tril", "input diagonal", Triangle, "lower"},
    {"TrilExt", "input diagonal", Triangle, "lower"},
    {"Triu", "input diagonal", Triangle, "upper"},
};

}  // namespace

std::span<const Rule> MovementRules() { return kMovementRules; }

}  // namespace msrt::mindir_import
