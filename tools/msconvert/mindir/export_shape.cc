// Ops that move elements or compute shapes, as primitives of MindSpore.
#include <algorithm>
#include <numeric>

#include "core/graph/constants.h"
#include "core/region/pad.h"
#include "tools/msconvert/mindir/export_lower.h"

namespace msrt::mindir_export {
namespace {

int UnknownDims(const Dims& dims) {
  return static_cast<int>(
      std::count_if(dims.begin(), dims.end(), [](int64_t d) { return !IsKnown(d); }));
}

Ref ShapeTensor(NodeLowering& n, size_t input) { return n.Op("TensorShape", {n.In(input)}); }

// Returns elements [begin, end) of a tensor of rank 1.
Ref Part(NodeLowering& n, const Ref& list, int64_t begin, int64_t end) {
  return n.Op("StridedSlice", {list, Ints{begin}, Ints{end}, Ints{1}, 0, 0, 0, 0, 0});
}

Ref AsTuple(NodeLowering& n, const Ref& list) { return n.Prim("TensorToTuple", {}, {list}); }

// For several unknown dims; zeros mean "as in the input".
Status LowerReshapeTo(NodeLowering& n, const Ints& wished) {
  const bool zero_copies = n.op().Int("allowzero") == 0;
  Args dims;
  for (size_t i = 0; i < wished.size(); ++i) {
    if (wished[i] != 0 || !zero_copies) dims.emplace_back(wished[i]);
    else dims.emplace_back(n.out().DimOf(n.In(0), static_cast<int>(i)));
  }
  n.SetOutput(n.Op("Reshape", {n.In(0), n.out().ShapeTuple(dims)}));
  return OkStatus();
}

// For a shape that is computed at run time.
Status LowerReshapeAtRun(NodeLowering& n) {
  const Ref wished = n.Op("Cast", {n.In(1), TypeIdOf(DType::kI64)});
  if (n.op().Int("allowzero") != 0) {
    n.SetOutput(n.Op("Reshape", {n.In(0), AsTuple(n, wished)}));
    return OkStatus();
  }
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  const int64_t count = n.result().rank(), common = std::min<int64_t>(count, n.dims(0).rank());
  Ref own = common == n.dims(0).rank() ? ShapeTensor(n, 0) : Part(n, ShapeTensor(n, 0), 0, common);
  if (count > common)
    own =
        n.Op("Concat",
             {n.out().Tuple({own, n.IntTensor(Ints(static_cast<size_t>(count - common), 0))}), 0});
  const Ref shape =
      n.Op("Select", {n.Op("Equal", {wished, n.Number(0, DType::kI64)}), own, wished});
  n.SetOutput(n.Op("Reshape", {n.In(0), AsTuple(n, shape)}));
  return OkStatus();
}

Status LowerReshapeOp(NodeLowering& n) {
  if (n.result().rank_known && UnknownDims(n.result().dims) <= 1) {
    n.SetOutput(LowerReshape(n, n.In(0), n.result().dims));
    return OkStatus();
  }
  if (!n.result().rank_known)
    return Unsupported("the rank of the result is not known before the run");
  const auto known = n.KnownInts("shape", 1);
  return known ? LowerReshapeTo(n, *known) : LowerReshapeAtRun(n);
}

Status LowerSqueeze(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  auto axes = n.KnownInts("axes", 1);
  if (!axes && n.Has(1)) return Unsupported("axes are not known before the run");
  if (!axes) {
    axes = Ints();
    for (int i = 0; i < n.dims(0).rank(); ++i) {
      if (n.dims(0)[i] == 1) axes->push_back(i);
      if (!IsKnown(n.dims(0)[i]))
        return Unsupported("it has no axes, and dim ", i,
                           " of the input is not known before the run");
    }
  }
  n.SetOutput(axes->empty() ? n.In(0) : n.Op("Squeeze", {n.In(0), *axes}));
  return OkStatus();
}

Status LowerUnsqueeze(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  auto axes = n.KnownInts("axes", 1);
  if (!axes) return Unsupported("axes are not known before the run");
  const int rank = n.dims(0).rank() + static_cast<int>(axes->size());
  for (int64_t& a : *axes) a = FromFront(a, rank);
  std::sort(axes->begin(), axes->end());
  Ref x = n.In(0);
  for (int64_t a : *axes) x = n.Op("ExpandDims", {x, a});
  n.SetOutput(x);
  return OkStatus();
}

Status LowerFlatten(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  const Dims& x = n.dims(0);
  const int64_t axis = FromFront(n.op().Int("axis"), x.rank());
  if (UnknownDims(n.result().dims) <= 1) {
    n.SetOutput(LowerReshape(n, n.In(0), n.result().dims));
  } else if (axis == 1) {
    n.SetOutput(n.Op("Flatten", {n.In(0)}));
  } else {
    const Ref shape = ShapeTensor(n, 0);
    const Ref rows = n.Op("ReduceProd", {Part(n, shape, 0, axis), Ints{0}, true});
    n.SetOutput(
        n.Op("Reshape",
             {n.In(0), AsTuple(n, n.Op("Concat", {n.out().Tuple({rows, n.IntTensor({-1})}), 0}))}));
  }
  return OkStatus();
}

Status LowerShape(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  const int64_t rank = n.dims(0).rank();
  const auto clamped = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t begin = clamped(n.op().Int("start")),
                end = n.op().Has("end") ? clamped(n.op().Int("end")) : rank;
  if (UnknownDims(n.dims(0)) == 0 || begin >= end) {
    const Dims& d = n.dims(0);
    n.SetOutput(n.IntTensor(begin < end ? Ints(d.begin() + begin, d.begin() + end) : Ints()));
    return OkStatus();
  }
  const Ref shape = ShapeTensor(n, 0);
  n.SetOutput(begin == 0 && end == rank ? shape : Part(n, shape, begin, end));
  return OkStatus();
}

Status LowerSize(NodeLowering& n) {
  if (n.type(0).concrete())
    n.SetOutput(n.Number(static_cast<double>(n.type(0).elements()), DType::kI64));
  else n.SetOutput(n.Op("ReduceProd", {ShapeTensor(n, 0), Ints{0}, false}));
  return OkStatus();
}

Status LowerExpand(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  if (n.result().concrete()) {
    n.SetOutput(
        n.Op("BroadcastTo", {n.In(0), Ints(n.result().dims.begin(), n.result().dims.end())}));
    return OkStatus();
  }
  // Both shapes broadcast against each other, as in a product with ones, or an Or with false.
  const bool truth = n.dtype() == DType::kBool;
  const Ref neutral = n.Prim("FillV2", {}, {n.IntsArg("shape", 1), n.Number(truth ? 0 : 1)});
  n.SetOutput(n.Op(truth ? "LogicalOr" : "Mul", {n.In(0), neutral}));
  return OkStatus();
}

Status LowerTranspose(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  Ints perm(n.op().Ints("perm").begin(), n.op().Ints("perm").end());
  if (perm.empty()) {
    for (int i = n.dims(0).rank(); i-- > 0;) perm.push_back(i);
  }
  n.SetOutput(perm.empty() ? n.In(0) : n.Op("Transpose", {n.In(0), perm}));
  return OkStatus();
}

Status LowerConcat(NodeLowering& n) {
  const std::vector<Ref> inputs = n.AllInputs();
  n.SetOutput(inputs.size() == 1 ? inputs[0]
                                 : n.Op("Concat", {n.out().Tuple(inputs), n.op().Int("axis")}));
  return OkStatus();
}

Status LowerSplit(NodeLowering& n) {
  const size_t count = n.node().outputs.size();
  const int64_t axis = n.op().Int("axis");
  Ints sizes;
  for (size_t i = 0; i < count; ++i) {
    if (!n.Wants(i)) return Unsupported("output ", i, " is left out");
    const Type& part = n.result(i);
    const int64_t size =
        part.rank_known ? part.dims[static_cast<int>(FromFront(axis, part.rank()))] : kUnknownDim;
    if (!IsKnown(size)) return Unsupported("the sizes of the parts are not known before the run");
    sizes.push_back(size);
  }
  if (count == 1) {
    n.SetOutput(n.In(0));
    return OkStatus();
  }
  const bool even =
      std::all_of(sizes.begin(), sizes.end(), [&](int64_t s) { return s == sizes[0]; });
  const Ref parts = even ? n.Op("Split", {n.In(0), axis, static_cast<int64_t>(count)})
                         : n.Op("SplitWithSize", {n.In(0), sizes, axis});
  for (size_t i = 0; i < count; ++i) n.SetOutput(i, n.out().Item(parts, i));
  return OkStatus();
}

// ---- Slice --------------------------------------------------------------------------------------

// StridedSlice over all axes; a set bit of a mask means from the beginning or to the end of the
// axis.
struct SliceForm {
  Ints begin, end, steps;
  int64_t begin_mask = 0, end_mask = 0;
};

// Sets one axis with ONNX's bounds: negative ones count from the end, and all are clamped.
void SetAxis(SliceForm* form, int64_t axis, int64_t start, int64_t end, int64_t step, int64_t dim) {
  const size_t a = static_cast<size_t>(axis);
  form->steps[a] = step;
  form->begin_mask &= ~(int64_t{1} << axis);
  form->end_mask &= ~(int64_t{1} << axis);
  if (IsKnown(dim)) {
    const auto resolved = [&](int64_t at, int64_t low, int64_t high) {
      return std::clamp(at < 0 ? at + dim : at, low, high);
    };
    form->begin[a] = step > 0 ? resolved(start, 0, dim) : resolved(start, 0, dim - 1);
    form->end[a] = step > 0 ? resolved(end, 0, dim) : resolved(end, -1, dim - 1);
    if (step < 0 && form->end[a] < 0) form->end_mask |= int64_t{1} << axis;
    return;
  }
  constexpr int64_t kFar = int64_t{1} << 31;  // exporters write the largest number for "to the end"
  form->begin[a] = start;
  form->end[a] = end;
  if (step > 0 && end >= kFar - 1) form->end_mask |= int64_t{1} << axis;
  if (step < 0 && end <= -kFar + 1) form->end_mask |= int64_t{1} << axis;
  if (step < 0 && start >= kFar - 1) form->begin_mask |= int64_t{1} << axis;
}

SliceForm WholeSlice(size_t rank) {
  const int64_t all = (int64_t{1} << rank) - 1;
  return {.begin = Ints(rank, 0),
          .end = Ints(rank, 0),
          .steps = Ints(rank, 1),
          .begin_mask = all,
          .end_mask = all};
}

// For bounds that are known only at run time, for one axis and step 1, as dynamic models have them.
Status LowerSliceAtRun(NodeLowering& n, const Ints& axes) {
  if (axes.size() != 1)
    return Unsupported("starts or ends are not known before the run, for more than one axis");
  const auto steps = n.KnownInts("steps", 4);
  if (n.Has(4) && (!steps || (*steps)[0] != 1))
    return Unsupported("starts or ends are not known before the run, with a step");
  const size_t rank = static_cast<size_t>(n.dims(0).rank()),
               axis = static_cast<size_t>(FromFront(axes[0], n.dims(0).rank()));
  SliceForm form = WholeSlice(rank);
  form.begin_mask &= ~(int64_t{1} << axis);
  form.end_mask &= ~(int64_t{1} << axis);
  const auto bound = [&](std::string_view attr, size_t input) -> Arg {
    Args elements;
    if (const auto known = n.KnownInts(attr, input)) {
      Ints list(rank, 0);
      list[axis] = std::clamp<int64_t>((*known)[0], -(int64_t{1} << 31), (int64_t{1} << 31) - 1);
      return list;
    }
    const Ref wide = n.type(input).dtype == DType::kI64
                         ? n.In(input)
                         : n.Op("Cast", {n.In(input), TypeIdOf(DType::kI64)});
    std::vector<Ref> parts;
    if (axis > 0) parts.push_back(n.IntTensor(Ints(axis, 0)));
    parts.push_back(wide);
    if (axis + 1 < rank) parts.push_back(n.IntTensor(Ints(rank - axis - 1, 0)));
    return AsTuple(n, parts.size() == 1 ? parts[0] : n.Op("Concat", {n.out().Tuple(parts), 0}));
  };
  const Arg begin = bound("starts", 1), end = bound("ends", 2);
  n.SetOutput(n.Op("StridedSlice",
                   {n.In(0), begin, end, form.steps, form.begin_mask, form.end_mask, 0, 0, 0}));
  return OkStatus();
}

Status LowerSlice(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  const int rank = n.dims(0).rank();
  const auto starts = n.KnownInts("starts", 1), ends = n.KnownInts("ends", 2),
             steps = n.KnownInts("steps", 4);
  auto axes = n.KnownInts("axes", 3);
  if (!axes && n.Has(3)) return Unsupported("axes are not known before the run");
  if (!axes) {
    axes = Ints(static_cast<size_t>(starts ? starts->size() : 1));
    std::iota(axes->begin(), axes->end(), 0);
  }
  if (!starts || !ends) return LowerSliceAtRun(n, *axes);
  if (!steps && n.Has(4)) return Unsupported("steps are not known before the run");
  SliceForm form = WholeSlice(static_cast<size_t>(rank));
  for (size_t i = 0; i < starts->size(); ++i) {
    const int64_t axis = FromFront((*axes)[i], rank);
    SetAxis(&form, axis, (*starts)[i], (*ends)[i], steps ? (*steps)[i] : 1,
            n.dims(0)[static_cast<int>(axis)]);
  }
  if (n.result().concrete() && n.result().elements() == 0)
    return Unsupported("its result is empty: MindSpore cannot slice to nothing");
  n.SetOutput(n.Op("StridedSlice", {n.In(0), form.begin, form.end, form.steps, form.begin_mask,
                                    form.end_mask, 0, 0, 0}));
  return OkStatus();
}

Status LowerTile(NodeLowering& n) {
  n.SetOutput(n.Op("Tile", {n.In(0), n.IntsArg("repeats", 1)}));
  return OkStatus();
}

// ---- Pad ----------------------------------------------------------------------------------------

// Padding at the begin and end of every axis.
struct PadForm {
  Dims begin, end;
  bool Changes(int axis) const { return begin[axis] != 0 || end[axis] != 0; }
};

Result<PadForm> PadFormOf(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  const auto pads = n.KnownInts("pads", 1), axes = n.KnownInts("axes", 3);
  if (!pads) return Unsupported("pads are not known before the run");
  const int rank = n.dims(0).rank();
  PadForm form{Dims::Filled(rank, 0), Dims::Filled(rank, 0)};
  const size_t count = pads->size() / 2;
  for (size_t i = 0; i < count; ++i) {
    const int axis = static_cast<int>(axes ? FromFront((*axes)[i], rank) : static_cast<int64_t>(i));
    form.begin[axis] = (*pads)[i];
    form.end[axis] = (*pads)[i + count];
  }
  return form;
}

// Gathers by indices: MindSpore repeats elements only along the last axes of tensors of certain
// ranks.
Status LowerRepeatingPad(NodeLowering& n, const PadForm& form) {
  Ref x = n.In(0);
  for (int axis = 0; axis < n.dims(0).rank(); ++axis) {
    if (!form.Changes(axis)) continue;
    const int64_t extent = n.dims(0)[axis];
    if (!IsKnown(extent) || extent == 0)
      return Unsupported("dim ", axis, ", which it pads, is not known before the run");
    const PadAxis rule(*PadModeFromName(n.op().String("mode")), extent, form.begin[axis],
                       form.end[axis]);
    if (rule.kept == 0) return Unsupported("nothing of dim ", axis, " is kept");
    Ints sources;
    for (int64_t i = 0; i < extent + form.begin[axis] + form.end[axis]; ++i)
      sources.push_back(rule.Source(i));
    x = n.Op("Gather", {x, n.IntTensor(sources), axis, 0});
  }
  n.SetOutput(x);
  return OkStatus();
}

Status LowerPad(NodeLowering& n) {
  MSRT_ASSIGN_OR_RETURN(const PadForm form, PadFormOf(n));
  if (n.op().String("mode") != "constant") return LowerRepeatingPad(n, form);
  const int rank = n.dims(0).rank();
  int first = 0;
  while (first < rank && !form.Changes(first)) ++first;
  Ints paddings;  // the last axis first, without leading axes that are not padded
  for (int i = rank; i-- > first;) paddings.insert(paddings.end(), {form.begin[i], form.end[i]});
  if (paddings.empty()) {
    n.SetOutput(n.In(0));
    return OkStatus();
  }
  Arg value = n.op().Float("value");
  const ConstTensor* known = n.op().constant(2);
  if (known != nullptr && known->dtype == DType::kF32)
    value = static_cast<double>(known->As<float>()[0]);
  else if (n.Has(2)) value = n.Op("Reshape", {n.In(2), Ints{}});
  else if (n.dtype() != DType::kF32) value = n.Number(n.op().Float("value"));
  n.SetOutput(n.Prim("PadV3", {{"mode", "constant"}, {"paddings_contiguous", true}},
                     {n.In(0), paddings, value}));
  return OkStatus();
}

Status LowerConstantOfShape(NodeLowering& n) {
  const ConstTensor* value = n.op().Tensor("value");
  const ConstTensor filled = value != nullptr ? ConstTensor::Copy(value->dtype, {}, value->bytes)
                                              : NumberTensor(DType::kF32, 0);
  n.SetOutput(n.Prim("FillV2", {}, {n.IntsArg("shape", 0), n.out().Constant(filled)}));
  return OkStatus();
}

Status LowerRange(NodeLowering& n) {
  const auto number = [&](size_t input) {
    return n.Prim("TensorToScalar", {}, {n.Op("Reshape", {n.In(input), Ints{}})});
  };
  constexpr int64_t kMax = 1'000'000;
  n.SetOutput(n.Op("Range", {number(0), number(1), number(2), kMax}));
  return OkStatus();
}

Status LowerTrilu(NodeLowering& n) {
  int64_t diagonal = n.op().Int("k");
  if (n.Has(1)) {
    const ConstTensor* k = n.op().constant(1);
    if (k == nullptr) return Unsupported("k is not known before the run");
    diagonal = IntValues(*k)[0];
  }
  if (n.op().Int("upper") != 0) n.SetOutput(n.Op("Triu", {n.In(0), diagonal}));
  else n.SetOutput(n.Prim("Tril", {{"diagonal", diagonal}}, {n.In(0)}));
  return OkStatus();
}

Status LowerEyeLike(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedShape());
  constexpr int64_t kMax = 1 << 22;
  const Dims& dims = n.result().dims;
  if (dims.elements() > kMax)
    return Unsupported("its result of ", dims.elements(), " elements would stand in the file");
  MSRT_ASSIGN_OR_RETURN(const NewConstant made, MakeConstant(n.result().dtype, dims));
  std::fill(made.bytes.begin(), made.bytes.end(), std::byte{0});
  const ConstTensor one = NumberTensor(n.result().dtype, 1);
  const int64_t k = std::clamp(n.op().Int("k"), -dims[0], dims[1]);
  for (int64_t row = 0; row < dims[0]; ++row) {
    const int64_t column = row + k;
    if (column < 0 || column >= dims[1]) continue;
    std::copy(
        one.bytes.begin(), one.bytes.end(),
        made.bytes.begin() + (row * dims[1] + column) * static_cast<int64_t>(one.bytes.size()));
  }
  n.SetOutput(n.out().Constant(made.tensor));
  return OkStatus();
}

constexpr Lowerer kShapeLowerers[] = {
    {"Reshape", LowerReshapeOp},
    {"Squeeze", LowerSqueeze},
    {"Unsqueeze", LowerUnsqueeze},
    {"Flatten", LowerFlatten},
    {"Shape", LowerShape},
    {"Size", LowerSize},
    {"Expand", LowerExpand},
    {"Transpose", LowerTranspose},
    {"Concat", LowerConcat},
    {"Split", LowerSplit},
    {"Slice", LowerSlice},
    {"Tile", LowerTile},
    {"Pad", LowerPad},
    {"ConstantOfShape", LowerConstantOfShape},
    {"Range", LowerRange},
    {"Trilu", LowerTrilu},
    {"EyeLike", LowerEyeLike},
};

}  // namespace

Ref LowerReshape(NodeLowering& n, const Ref& x, const Dims& dims) {
  Ints shape;
  for (int64_t d : dims) shape.push_back(IsKnown(d) ? d : -1);
  return n.Op("Reshape", {x, shape});
}

std::span<const Lowerer> ShapeLowerers() { return kShapeLowerers; }

}  // namespace msrt::mindir_export
