// Ops about shapes: views of the same elements under other dims (Reshape, Squeeze, Unsqueeze,
// Flatten), Expand, and the dims themselves as data (Shape, Size).
#include <numeric>

#include "core/base/checked_math.h"
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

Cost CostOfView(const OpView&) { return {}; }

// Sets a shape that only the run will know: its rank is the length of the list, if that is known.
Status SetDimsOfUnknownList(InferContext& c, size_t list, int64_t extra_rank = 0) {
  const Type& type = c.input(list);
  const DType dtype = c.dtype(0);
  if (!type.rank_known || type.rank() != 1 || !IsKnown(type.dims[0])) {
    c.SetOutput(0, Type::UnrankedTensor(dtype));
    return OkStatus();
  }
  if (type.dims[0] > kMaxRank - extra_rank) {
    return InvalidModel("input ", list, " has ", type.dims[0],
                        " elements: the output would have more than ", kMaxRank, " dims");
  }
  c.SetOutput(0, dtype, Dims::Filled(static_cast<int>(type.dims[0] + extra_rank), kUnknownDim));
  return OkStatus();
}

Status CheckShapeList(std::span<const int64_t> shape, int64_t least) {
  if (shape.size() > kMaxRank)
    return InvalidModel("shape has ", shape.size(), " dims, at most ", kMaxRank, " are allowed");
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < least)
      return InvalidModel("shape[", i, "] = ", shape[i], ", must be at least ", least);
  }
  return OkStatus();
}

// ---- Reshape ------------------------------------------------------------------------------------

// One side of "elements in = elements out" after the dims that Reshape copies have been cancelled.
// Cancelling first lets an empty batch keep its other dims: [0, 3, 4] to [0, -1] is [0, 12], as it
// is for any other batch.
struct ProductSide {
  int64_t known = 1;                  // product of the known dims
  int unknown = 0;                    // number of unknown dims
  int64_t unknown_dim = kUnknownDim;  // the last of them

  Status Multiply(int64_t dim) {
    if (!IsKnown(dim)) {
      ++unknown;
      unknown_dim = dim;
    } else if (!CheckedMul(known, dim, &known)) {
      return InvalidModel("the product of the dims overflows");
    }
    return OkStatus();
  }
};

// Sets out[inferred] (if any) from the rest, or fails if the sizes cannot be equal.
Status SolveReshape(const Dims& in, Dims* out, std::span<const bool> copied, int inferred) {
  ProductSide from, to;
  bool copies_may_be_empty = false;
  for (int i = 0; i < std::max(in.rank(), out->rank()); ++i) {
    const bool copy = i < out->rank() && copied[static_cast<size_t>(i)];
    if (copy) copies_may_be_empty |= (*out)[i] <= 0;
    if (!copy && i < in.rank()) MSRT_RETURN_IF_ERROR(from.Multiply(in[i]));
    if (!copy && i < out->rank() && i != inferred) MSRT_RETURN_IF_ERROR(to.Multiply((*out)[i]));
  }
  const bool from_known = from.unknown == 0 || from.known == 0;
  if (inferred < 0) {
    if (from_known && from.known != to.known && !copies_may_be_empty) {
      return InvalidModel("cannot reshape ", in, " to ", *out, ": the numbers of elements differ");
    }
    return OkStatus();
  }
  // to.known > 0: a literal zero together with -1 has been refused.
  if (from_known) {
    if (from.known % to.known != 0) {
      return InvalidModel("cannot reshape ", in, ": the elements left for the dim -1, ", from.known,
                          ", are not a multiple of ", to.known);
    }
    (*out)[inferred] = from.known / to.known;
  } else if (from.unknown == 1 && from.known == to.known) {
    (*out)[inferred] = from.unknown_dim;
  }
  return OkStatus();
}

Status InferReshape(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckListAttrOrInput(c.op(), "shape", 1, true));
  const auto shape = IntsAttrOrInput(c.op(), "shape", 1);
  if (!shape) return SetDimsOfUnknownList(c, 1);
  MSRT_RETURN_IF_ERROR(CheckShapeList(*shape, -1));
  const bool zero_copies = c.op().Int("allowzero") == 0;
  const Type& in = c.input(0);
  Dims out;
  bool copied[kMaxRank] = {};
  int inferred = -1;
  bool literal_zero = false;
  for (int i = 0; i < static_cast<int>(shape->size()); ++i) {
    const int64_t d = (*shape)[static_cast<size_t>(i)];
    if (d == -1) {
      if (inferred >= 0)
        return InvalidModel("shape has -1 at ", inferred, " and at ", i,
                            ", at most one dim can be inferred");
      inferred = i;
      out.push_back(kUnknownDim);
    } else if (d == 0 && zero_copies) {
      if (in.rank_known && i >= in.rank())
        return InvalidModel("shape[", i, "] = 0 copies a dim that ", in.dims, " does not have");
      copied[i] = true;
      out.push_back(in.rank_known ? in.dims[i] : kUnknownDim);
    } else {
      literal_zero |= d == 0;
      out.push_back(d);
    }
  }
  if (literal_zero && inferred >= 0)
    return InvalidModel(
        "shape has both 0 (with allowzero = 1) and -1: the dim -1 could be anything");
  if (in.rank_known) MSRT_RETURN_IF_ERROR(SolveReshape(in.dims, &out, copied, inferred));
  c.SetOutput(0, in.dtype, out);
  return OkStatus();
}

// ---- Squeeze, Unsqueeze, Flatten ----------------------------------------------------------------

// Without axes, every dim of 1 is removed. With an empty list, none is.
bool SqueezesAll(const OpView& op) { return !op.Has("axes") && !op.has_input(1); }

Status InferSqueeze(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckListAttrOrInput(c.op(), "axes", 1));
  const Type& in = c.input(0);
  const auto axes = IntsAttrOrInput(c.op(), "axes", 1);
  const bool all = SqueezesAll(c.op());
  if (!in.rank_known || !axes || (all && !in.dims.known())) {
    c.SetOutput(0, Type::UnrankedTensor(in.dtype));
    return OkStatus();
  }
  bool gone[kMaxRank] = {};
  if (all) {
    for (int i = 0; i < in.rank(); ++i) gone[i] = in.dims[i] == 1;
  } else {
    MSRT_ASSIGN_OR_RETURN(const auto normalized, NormalizeAxes(*axes, in.rank()));
    for (int a : normalized) {
      if (IsKnown(in.dims[a]) && in.dims[a] != 1)
        return InvalidModel("axes names axis ", a, " of ", in.dims, ", which is not 1");
      gone[a] = true;
    }
  }
  Dims out;
  for (int i = 0; i < in.rank(); ++i) {
    if (!gone[i]) out.push_back(in.dims[i]);
  }
  c.SetOutput(0, in.dtype, out);
  return OkStatus();
}

Status InferUnsqueeze(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckListAttrOrInput(c.op(), "axes", 1, true));
  const Type& in = c.input(0);
  const auto axes = IntsAttrOrInput(c.op(), "axes", 1);
  if (!in.rank_known) {
    c.SetOutput(0, Type::UnrankedTensor(in.dtype));
    return OkStatus();
  }
  if (!axes) return SetDimsOfUnknownList(c, 1, in.rank());
  if (axes->size() > static_cast<size_t>(kMaxRank - in.rank())) {
    return InvalidModel("axes adds ", axes->size(), " dims to ", in.dims, ", more than ", kMaxRank,
                        " in all");
  }
  const int rank = in.rank() + static_cast<int>(axes->size());
  MSRT_ASSIGN_OR_RETURN(auto normalized, NormalizeAxes(*axes, rank));
  std::sort(normalized.begin(), normalized.end());
  Dims out = in.dims;
  for (int a : normalized) out.insert(a, 1);
  c.SetOutput(0, in.dtype, out);
  return OkStatus();
}

// Returns the product of dims [from, to): a number, a single open dim if all others are 1, or
// unknown.
Result<int64_t> ProductDim(const Dims& dims, int from, int to) {
  ProductSide product;
  for (int i = from; i < to; ++i) MSRT_RETURN_IF_ERROR(product.Multiply(dims[i]));
  if (product.unknown == 0 || product.known == 0) return product.known;
  return product.unknown == 1 && product.known == 1 ? product.unknown_dim : kUnknownDim;
}

Status InferFlatten(InferContext& c) {
  const Type& in = c.input(0);
  if (!in.rank_known) {
    c.SetOutput(0, in.dtype, {kUnknownDim, kUnknownDim});
    return OkStatus();
  }
  int64_t axis = c.op().Int("axis");
  if (axis < -in.rank() || axis > in.rank()) {
    return InvalidModel("axis = ", axis, ", must be in [", -in.rank(), ", ", in.rank(), "] for ",
                        in.dims);
  }
  if (axis < 0) axis += in.rank();
  MSRT_ASSIGN_OR_RETURN(const int64_t rows, ProductDim(in.dims, 0, static_cast<int>(axis)));
  MSRT_ASSIGN_OR_RETURN(const int64_t columns,
                        ProductDim(in.dims, static_cast<int>(axis), in.rank()));
  c.SetOutput(0, in.dtype, {rows, columns});
  return OkStatus();
}

// ---- the iteration space of views ---------------------------------------------------------------

// Both shapes divide into groups of adjacent dims with equal products: [2, 3, 4, 5] and [6, 2, 2,
// 5] into 2*3 = 6, 4 = 2*2, 5 = 5. Within a group, the outermost dims of both sides can be cut into
// gcd(outermost in, outermost out) equal parts that cover the same elements; the inner dims stay
// whole. Each group is one axis of the space. Dims of 1 belong to no group.
struct ViewGroup {
  int in_dim, out_dim;
  int64_t parts, in_step, out_step;
};
struct ViewGroups {
  ViewGroup groups[kMaxRank];
  int count = 0;
};

ViewGroups GroupsOf(const OpView& op) {
  const Dims& in = op.input(0).dims;
  const Dims& out = op.output(0).dims;
  ViewGroups result;
  // An empty tensor cannot be cut, and two 4-bit elements share a byte, so a piece may not begin at
  // an address.
  if (in.elements() == 0 || BitsOf(op.input(0).dtype) < 8) return result;
  int i = 0, o = 0;
  while (true) {
    while (i < in.rank() && in[i] == 1) ++i;
    while (o < out.rank() && out[o] == 1) ++o;
    if (i == in.rank()) return result;
    ViewGroup group{i, o, std::gcd(in[i], out[o]), 0, 0};
    group.in_step = in[i] / group.parts;
    group.out_step = out[o] / group.parts;
    int64_t in_product = in[i++], out_product = out[o++];
    while (in_product != out_product) {
      if (in_product < out_product) in_product *= in[i++];
      else out_product *= out[o++];
    }
    result.groups[result.count++] = group;
  }
}

// The dims of both types suffice; a list that is an input is not read.
Status ResolveView(const OpView& op, ResolvedSpace* space) {
  const ViewGroups view = GroupsOf(op);
  for (int g = 0; g < view.count; ++g) {
    const ViewGroup& group = view.groups[g];
    space->axes.Add(group.parts > 1 ? AxisKind::kParallel : AxisKind::kWhole, group.parts);
    space->inputs[0].dims[static_cast<size_t>(group.in_dim)] =
        DimMap::Block(g, group.in_step, op.input(0).dims[group.in_dim]);
    space->outputs[0].dims[static_cast<size_t>(group.out_dim)] =
        DimMap::Block(g, group.out_step, op.output(0).dims[group.out_dim]);
  }
  DropInputs(1, space);
  return OkStatus();
}

// A piece of Squeeze or Unsqueeze has its axes as an attribute.
Status ResolveSqueeze(const OpView& op, ResolvedSpace* space) {
  if (!IntsAttrOrInput(op, "axes", 1))
    return Unsupported("cannot be cut before its axes are known");
  return ResolveView(op, space);
}

Status LocalizeReshape(const OpView&, const Box&, std::span<const Box>,
                       std::span<const Box> outputs, AttrList* attrs) {
  attrs->Set("shape", ExtentsOf(outputs[0]));
  attrs->Set("allowzero", int64_t{1});
  return OkStatus();
}

// A dim that became 1 by cutting must stay.
Status LocalizeSqueeze(const OpView& op, const Box&, std::span<const Box>, std::span<const Box>,
                       AttrList* attrs) {
  if (!SqueezesAll(op)) {
    attrs->Set("axes", *IntsAttrOrInput(op, "axes", 1));
    return OkStatus();
  }
  std::vector<int64_t> axes;
  for (int i = 0; i < op.input(0).rank(); ++i) {
    if (op.input(0).dims[i] == 1) axes.push_back(i);
  }
  attrs->Set("axes", std::move(axes));
  return OkStatus();
}

Status LocalizeUnsqueeze(const OpView& op, const Box&, std::span<const Box>, std::span<const Box>,
                         AttrList* attrs) {
  attrs->Set("axes", *IntsAttrOrInput(op, "axes", 1));
  return OkStatus();
}

// ---- Shape, Size --------------------------------------------------------------------------------

Status InferShape(InferContext& c) {
  const Type& in = c.input(0);
  if (!in.rank_known) {
    c.SetOutput(0, DType::kI64, {kUnknownDim});
    return OkStatus();
  }
  const auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + in.rank() : at, 0, in.rank());
  };
  const int64_t start = clamp(c.op().Int("start"));
  const int64_t end = c.op().Has("end") ? clamp(c.op().Int("end")) : in.rank();
  c.SetOutput(0, DType::kI64, {std::max<int64_t>(end - start, 0)});
  return OkStatus();
}

Status InferSize(InferContext& c) {
  c.SetOutput(0, DType::kI64, Dims());
  return OkStatus();
}

// ---- Expand -------------------------------------------------------------------------------------

Status InferExpand(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckListAttrOrInput(c.op(), "shape", 1, true));
  const Type& in = c.input(0);
  const auto shape = IntsAttrOrInput(c.op(), "shape", 1);
  if (shape) MSRT_RETURN_IF_ERROR(CheckShapeList(*shape, 0));
  if (!in.rank_known) {
    c.SetOutput(0, Type::UnrankedTensor(in.dtype));
    return OkStatus();
  }
  if (shape) {
    MSRT_ASSIGN_OR_RETURN(const Dims out, BroadcastDims(in.dims, Dims(*shape)));
    c.SetOutput(0, in.dtype, out);
    return OkStatus();
  }
  MSRT_RETURN_IF_ERROR(SetDimsOfUnknownList(c, 1));
  const Type& list = c.input(1);
  if (list.rank_known && list.rank() == 1 && IsKnown(list.dims[0])) {
    c.SetOutput(0, in.dtype,
                Dims::Filled(std::max(in.rank(), static_cast<int>(list.dims[0])), kUnknownDim));
  }
  return OkStatus();
}

Status ResolveExpand(const OpView& op, ResolvedSpace* space) {
  space->inputs[0] = TensorMap::Broadcast(op.input(0).dims, op.output(0).rank());
  DropInputs(1, space);
  return ResolveByOutput(op, space);
}

Status LocalizeExpand(const OpView&, const Box&, std::span<const Box>, std::span<const Box> outputs,
                      AttrList* attrs) {
  attrs->Set("shape", ExtentsOf(outputs[0]));
  return OkStatus();
}

// ---- entries ------------------------------------------------------------------------------------

constexpr SpaceDef kReshapeSpace{.localize = LocalizeReshape, .resolve = ResolveView};
constexpr SpaceDef kSqueezeSpace{.localize = LocalizeSqueeze, .resolve = ResolveSqueeze};
constexpr SpaceDef kUnsqueezeSpace{.localize = LocalizeUnsqueeze, .resolve = ResolveSqueeze};
constexpr SpaceDef kFlattenSpace{.resolve = ResolveView};
constexpr SpaceDef kExpandSpace{.localize = LocalizeExpand, .resolve = ResolveExpand};

constexpr AttrDef kReshapeAttrs[] = {
    {.name = "shape", .kind = AttrKind::kInts, .min_int = -1, .max_count = kMaxRank},
    {.name = "allowzero", .min_int = 0, .max_int = 1},
};
constexpr AttrDef kAxesAttrs[] = {
    {.name = "axes",
     .kind = AttrKind::kInts,
     .min_int = -kMaxRank,
     .max_int = kMaxRank - 1,
     .max_count = kMaxRank},
};
constexpr AttrDef kFlattenAttrs[] = {
    {.name = "axis", .default_int = 1, .min_int = -kMaxRank, .max_int = kMaxRank}};
constexpr AttrDef kShapeAttrs[] = {{.name = "start"}, {.name = "end"}};
constexpr AttrDef kExpandAttrs[] = {
    {.name = "shape", .kind = AttrKind::kInts, .min_int = 0, .max_count = kMaxRank}};

constexpr ParamDef kReshapeInputs[] = {{"data", kAllTypes},
                                       {"shape", kIndexTypes, ParamDef::kOptional}};
constexpr ParamDef kAxesInputs[] = {{"data", kAllTypes},
                                    {"axes", kIndexTypes, ParamDef::kOptional}};
constexpr ParamDef kDataInput[] = {{"data", kAllTypes}};
constexpr ParamDef kExpandInputs[] = {{"input", kComputeTypes | kF8Types},
                                      {"shape", kIndexTypes, ParamDef::kOptional}};

constexpr OpDef kShapeOps[] = {
    {.name = "Reshape",
     .attrs = kReshapeAttrs,
     .inputs = kReshapeInputs,
     .infer = InferReshape,
     .grad = GradReshape,
     .space = &kReshapeSpace,
     .cost = CostOfView,
     .traits = kView},
    {.name = "Squeeze",
     .attrs = kAxesAttrs,
     .inputs = kAxesInputs,
     .infer = InferSqueeze,
     .grad = GradReshape,
     .space = &kSqueezeSpace,
     .cost = CostOfView,
     .traits = kView},
    {.name = "Unsqueeze",
     .attrs = kAxesAttrs,
     .inputs = kAxesInputs,
     .infer = InferUnsqueeze,
     .grad = GradReshape,
     .space = &kUnsqueezeSpace,
     .cost = CostOfView,
     .traits = kView},
    {.name = "Flatten",
     .attrs = kFlattenAttrs,
     .inputs = kDataInput,
     .infer = InferFlatten,
     .grad = GradReshape,
     .space = &kFlattenSpace,
     .cost = CostOfView,
     .traits = kView},
    {.name = "Shape",
     .attrs = kShapeAttrs,
     .inputs = kDataInput,
     .infer = InferShape,
     .cost = CostOfView,
     .traits = kShapeOnly},
    {.name = "Size",
     .inputs = kDataInput,
     .infer = InferSize,
     .cost = CostOfView,
     .traits = kShapeOnly},
    {.name = "Expand",
     .attrs = kExpandAttrs,
     .inputs = kExpandInputs,
     .infer = InferExpand,
     .grad = GradExpand,
     .space = &kExpandSpace},
};

}  // namespace

std::span<const OpDef> ShapeOps() { return kShapeOps; }

}  // namespace msrt
