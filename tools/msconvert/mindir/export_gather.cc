// Gathers, scatters, searches and sums along an axis, as primitives of MindSpore.
#include <algorithm>

#include "tools/msconvert/mindir/export_lower.h"

namespace msrt::mindir_export {
namespace {

// MindSpore ignores negative indices, which in ONNX count from the end. The indices are along
// `axis` of `data`.
Ref FromFrontIndices(NodeLowering& n, size_t data, size_t indices, int64_t axis) {
  const ConstTensor* known = n.op().constant(indices);
  const DType dtype = n.type(indices).dtype;
  if (known != nullptr) {
    const auto values = IntValues(*known);
    if (std::none_of(values.begin(), values.end(), [](int64_t v) { return v < 0; }))
      return n.In(indices);
  }
  const int64_t extent = n.dims(data)[static_cast<int>(axis)];
  if (IsKnown(extent))
    return n.Op("FloorMod", {n.In(indices),
                             n.Number(static_cast<double>(std::max<int64_t>(extent, 1)), dtype)});
  const Ref shape = n.Op("TensorShape", {n.In(data)});
  Ref dim = n.Op("Gather", {shape, n.Number(static_cast<double>(axis), DType::kI64), 0, 0});
  if (dtype != DType::kI64) dim = n.Op("Cast", {dim, TypeIdOf(dtype)});
  return n.Op("FloorMod", {n.In(indices), dim});
}

Status LowerGather(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  const int64_t axis = FromFront(n.op().Int("axis"), n.dims(0).rank());
  n.SetOutput(n.Op("Gather", {n.In(0), FromFrontIndices(n, 0, 1, axis), axis, 0}));
  return OkStatus();
}

Status LowerGatherElements(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  const int64_t axis = FromFront(n.op().Int("axis"), n.dims(0).rank());
  n.SetOutput(n.Op("GatherD", {n.In(0), axis, FromFrontIndices(n, 0, 1, axis)}));
  return OkStatus();
}

// Indices of rows have one column for each of the leading axes.
Result<Ref> FromFrontRows(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedShape(0));
  MSRT_RETURN_IF_ERROR(n.NeedRank(1));
  const int64_t columns = n.dims(1).back();
  if (!IsKnown(columns))
    return Unsupported("the last dim of the indices is not known before the run");
  const ConstTensor* known = n.op().constant(1);
  if (known != nullptr) {
    const auto values = IntValues(*known);
    if (std::none_of(values.begin(), values.end(), [](int64_t v) { return v < 0; })) return n.In(1);
  }
  Ref extents = n.IntTensor(Ints(n.dims(0).begin(), n.dims(0).begin() + columns));
  if (n.type(1).dtype != DType::kI64) extents = n.Op("Cast", {extents, TypeIdOf(n.type(1).dtype)});
  return n.Op("FloorMod", {n.In(1), extents});
}

Status LowerGatherNd(NodeLowering& n) {
  if (n.op().Int("batch_dims") != 0)
    return Unsupported("attribute 'batch_dims' = ", n.op().Int("batch_dims"),
                       ": MindSpore has none");
  MSRT_ASSIGN_OR_RETURN(const Ref rows, FromFrontRows(n));
  n.SetOutput(n.Op("GatherNd", {n.In(0), rows}));
  return OkStatus();
}

Status LowerScatterNd(NodeLowering& n) {
  constexpr std::pair<std::string_view, std::string_view> kForms[] = {
      {"none", "TensorScatterUpdate"},
      {"add", "TensorScatterAdd"},
      {"mul", "TensorScatterMul"},
      {"max", "TensorScatterMax"},
      {"min", "TensorScatterMin"}};
  MSRT_ASSIGN_OR_RETURN(const Ref rows, FromFrontRows(n));
  for (const auto& [reduction, primitive] : kForms) {
    if (reduction == n.op().String("reduction"))
      n.SetOutput(n.Prim(primitive, {}, {n.In(0), rows, n.In(2)}));
  }
  return OkStatus();
}

Status LowerScatterElements(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  const std::string_view reduction = n.op().String("reduction");
  if (reduction != "none" && reduction != "add")
    return Unsupported("attribute 'reduction' = ", reduction, ": MindSpore has none and add");
  const int64_t axis = FromFront(n.op().Int("axis"), n.dims(0).rank());
  const int by = reduction == "none" ? 0 : 1;  // MindSpore's numbers
  n.SetOutput(
      n.Op("TensorScatterElements", {n.In(0), FromFrontIndices(n, 0, 1, axis), n.In(2), axis, by}));
  return OkStatus();
}

Status LowerOneHot(NodeLowering& n) {
  const auto depth =
      n.op().Has("depth") ? std::optional<Ints>(Ints{n.op().Int("depth")}) : n.KnownInts("", 1);
  if (!depth) return Unsupported("depth is not known before the run");
  const auto element = [&](int i) {
    return n.Op(
        "Reshape",
        {n.Op("StridedSlice", {n.In(2), Ints{i}, Ints{i + 1}, Ints{1}, 0, 0, 0, 0, 0}), Ints{}});
  };
  const Ref whole =
      n.type(0).dtype == DType::kI64 ? n.In(0) : n.Op("Cast", {n.In(0), TypeIdOf(DType::kI64)});
  const Ref classes =
      n.Op("Select",
           {n.Op("Less", {whole, n.Number(0, DType::kI64)}),
            n.Op("Add", {whole, n.Number(static_cast<double>((*depth)[0]), DType::kI64)}), whole});
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  const int rank = n.dims(0).rank() + 1;
  const int64_t axis = FromFront(n.op().Int("axis"), rank);
  n.SetOutput(
      n.Op("OneHot", {classes, (*depth)[0], element(1), element(0), axis == rank - 1 ? -1 : axis}));
  return OkStatus();
}

Status LowerArg(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  if (n.op().Int("select_last_index") != 0)
    return Unsupported("attribute 'select_last_index' = 1: MindSpore gives the first");
  const int64_t axis = FromFront(n.op().Int("axis"), n.dims(0).rank());
  Ref found = n.Op(n.primitive(), {n.In(0), axis, TypeIdOf(DType::kI64)});
  if (n.op().Int("keepdims") != 0) found = n.Op("ExpandDims", {found, axis});
  n.SetOutput(found);
  return OkStatus();
}

Status LowerHardmax(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  const int rank = n.dims(0).rank();
  const int64_t axis = FromFront(n.op().Int("axis"), rank),
                extent = n.dims(0)[static_cast<int>(axis)];
  if (!IsKnown(extent))
    return Unsupported("dim ", axis, " of the input is not known before the run");
  const Ref most = n.Op("Argmax", {n.In(0), axis, TypeIdOf(DType::kI64)});
  n.SetOutput(
      n.Op("OneHot", {most, extent, n.Number(1), n.Number(0), axis == rank - 1 ? -1 : axis}));
  return OkStatus();
}

Status LowerTopK(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  const auto k = n.op().Has("k") ? std::optional<Ints>(Ints{n.op().Int("k")}) : n.KnownInts("", 1);
  if (!k) return Unsupported("k is not known before the run");
  if (!IsFloat(n.dtype()) && n.dtype() != DType::kI32)
    return Unsupported("MindSpore's TopK has no element type ", n.dtype());
  const int rank = n.dims(0).rank();
  const int64_t axis = FromFront(n.op().Int("axis"), rank);
  const bool smallest = n.op().Int("largest") == 0;
  Ints perm(static_cast<size_t>(rank));
  for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
  std::swap(perm[static_cast<size_t>(axis)], perm.back());
  const auto turned = [&](const Ref& x) {
    return axis == rank - 1 ? x : n.Op("Transpose", {x, perm});
  };
  Ref x = turned(n.In(0));
  if (smallest) x = n.Op("Neg", {x});
  const Ref best = n.Prim("TopK", {{"sorted", true}}, {x, (*k)[0]});
  if (n.Wants(0)) {
    const Ref values = n.out().Item(best, 0);
    n.SetOutput(0, turned(smallest ? n.Op("Neg", {values}) : values));
  }
  if (n.Wants(1))
    n.SetOutput(1, turned(n.Op("Cast", {n.out().Item(best, 1), TypeIdOf(DType::kI64)})));
  return OkStatus();
}

Status LowerCumSum(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  const auto axis =
      n.op().Has("axis") ? std::optional<Ints>(Ints{n.op().Int("axis")}) : n.KnownInts("", 1);
  if (!axis) return Unsupported("the axis is not known before the run");
  n.SetOutput(n.Op("CumSum", {n.In(0), FromFront((*axis)[0], n.dims(0).rank()),
                              n.op().Int("exclusive") != 0, n.op().Int("reverse") != 0}));
  return OkStatus();
}

Status LowerNonZero(NodeLowering& n) {
  n.SetOutput(n.Op("Transpose", {n.Op("NonZero", {n.In(0)}), Ints{1, 0}}));
  return OkStatus();
}

constexpr Lowerer kGatherLowerers[] = {
    {"Gather", LowerGather},
    {"GatherElements", LowerGatherElements},
    {"GatherND", LowerGatherNd},
    {"ScatterND", LowerScatterNd},
    {"ScatterElements", LowerScatterElements},
    {"OneHot", LowerOneHot},
    {"ArgMax", LowerArg, "Argmax"},
    {"ArgMin", LowerArg, "Argmin"},
    {"Hardmax", LowerHardmax},
    {"TopK", LowerTopK},
    {"CumSum", LowerCumSum},
    {"NonZero", LowerNonZero},
};

}  // namespace

std::span<const Lowerer> GatherLowerers() { return kGatherLowerers; }

}  // namespace msrt::mindir_export
