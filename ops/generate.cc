// Ops whose elements are a function of their index: ConstantOfShape, Range, EyeLike, and Trilu,
// which selects elements by their index.
#include <cmath>

#include "core/base/checked_math.h"
#include "core/base/half.h"
#include "ops/families.h"
#include "ops/grad_builder.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

// ---- ConstantOfShape ----------------------------------------------------------------------------

constexpr DTypeSet kFillTypes = kComputeTypes | kF8Types;

Status InferConstantOfShape(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckListAttrOrInput(c.op(), "shape", 0, true));
  DType dtype = DType::kF32;
  if (const ConstTensor* value = c.op().Tensor("value")) {
    dtype = value->dtype;
    const bool one =
        std::all_of(value->dims.begin(), value->dims.end(), [](int64_t d) { return d == 1; });
    if (!one || value->bytes.size() != BytesOf(dtype, 1))
      return InvalidModel("value has dims ", value->dims, ", must have one element");
    if (!kFillTypes.Has(dtype))
      return InvalidModel("value has element type ", dtype, ", must be one of ",
                          kFillTypes.Names());
  }
  const auto shape = IntsAttrOrInput(c.op(), "shape", 0);
  if (shape) {
    if (shape->size() > kMaxRank)
      return InvalidModel("shape has ", shape->size(), " dims, at most ", kMaxRank, " are allowed");
    for (size_t i = 0; i < shape->size(); ++i) {
      if ((*shape)[i] < 0)
        return InvalidModel("shape[", i, "] = ", (*shape)[i], ", must be at least 0");
    }
    c.SetOutput(0, dtype, Dims(*shape));
    return OkStatus();
  }
  const Type& list = c.input(0);
  if (!list.rank_known || list.rank() != 1 || !IsKnown(list.dims[0])) {
    c.SetOutput(0, Type::UnrankedTensor(dtype));
    return OkStatus();
  }
  if (list.dims[0] > kMaxRank)
    return InvalidModel("the shape has ", list.dims[0], " dims, at most ", kMaxRank,
                        " are allowed");
  c.SetOutput(0, dtype, Dims::Filled(static_cast<int>(list.dims[0]), kUnknownDim));
  return OkStatus();
}

// The shape of a piece is in its attributes.
Status ResolveConstantOfShape(const OpView& op, ResolvedSpace* space) {
  DropInputs(0, space);
  return ResolveByOutput(op, space);
}

Status NothingButWholeInputs(const OpView& op, const Box&, std::span<Box> inputs) {
  WholeOperands(op, inputs);
  return OkStatus();
}

Status LocalizeConstantOfShape(const OpView&, const Box&, std::span<const Box>,
                               std::span<const Box> outputs, AttrList* attrs) {
  attrs->Set("shape", ExtentsOf(outputs[0]));
  return OkStatus();
}

// ---- Range --------------------------------------------------------------------------------------

constexpr DTypeSet kRangeTypes = kFloatTypes | DTypeSet{DType::kI16, DType::kI32, DType::kI64};
constexpr int64_t kMaxRangeElements = int64_t{1} << 56;  // limit of InferTypes for any tensor

Status TooManyElements() {
  return InvalidModel(
      "the range from start to limit in steps of delta has more than 2^56 elements");
}

int64_t IntAt(const ConstTensor& t) {
  return t.dtype == DType::kI16 ? t.As<int16_t>()[0] : IntValues(t)[0];
}

double FloatAt(const ConstTensor& t) {
  if (t.dtype == DType::kF64) return t.As<double>()[0];
  if (t.dtype == DType::kF32) return t.As<float>()[0];
  return t.dtype == DType::kF16 ? float{t.As<Half>()[0]} : float{t.As<BFloat16>()[0]};
}

// max(ceil((limit - start) / delta), 0)
Result<int64_t> CountOfInts(int64_t start, int64_t limit, int64_t delta) {
  if (delta == 0) return InvalidModel("delta is 0, must be another number");
  if (delta > 0 ? limit <= start : limit >= start) return int64_t{0};
  // Unsigned: the distance and the negated step may exceed int64.
  const uint64_t low = static_cast<uint64_t>(start), high = static_cast<uint64_t>(limit),
                 step = static_cast<uint64_t>(delta);
  const uint64_t distance = delta > 0 ? high - low : low - high,
                 stride = delta > 0 ? step : uint64_t{0} - step;
  const uint64_t count = (distance - 1) / stride + 1;
  if (count > static_cast<uint64_t>(kMaxRangeElements)) return TooManyElements();
  return static_cast<int64_t>(count);
}

Result<int64_t> CountOfFloats(double start, double limit, double delta) {
  if (delta == 0) return InvalidModel("delta is 0, must be another number");
  if (!std::isfinite(start) || !std::isfinite(limit) || !std::isfinite(delta))
    return InvalidModel("start, limit and delta must be finite");
  const double count = std::ceil((limit - start) / delta);
  if (count > static_cast<double>(kMaxRangeElements)) return TooManyElements();
  return count > 0 ? static_cast<int64_t>(count) : 0;
}

Result<int64_t> RangeCount(const OpView& op) {
  const ConstTensor *start = op.constant(0), *limit = op.constant(1), *delta = op.constant(2);
  if (start == nullptr || limit == nullptr || delta == nullptr) return kUnknownDim;
  for (const ConstTensor* t : {start, limit, delta}) {
    if (t->dims.rank() > 1 || (t->dims.rank() == 1 && t->dims[0] != 1))
      return InvalidModel("start, limit and delta must be scalars");
  }
  if (IsFloat(start->dtype))
    return CountOfFloats(FloatAt(*start), FloatAt(*limit), FloatAt(*delta));
  return CountOfInts(IntAt(*start), IntAt(*limit), IntAt(*delta));
}

Status InferRange(InferContext& c) {
  for (size_t i = 0; i < 3; ++i) {
    const Type& t = c.input(i);
    if (!t.rank_known || t.rank() == 0) continue;
    const bool scalar = t.rank() == 1 && (!IsKnown(t.dims[0]) || t.dims[0] == 1);
    if (!scalar) return InvalidModel("input ", i, " has shape ", t.dims, ", must be a scalar");
  }
  MSRT_ASSIGN_OR_RETURN(int64_t count, RangeCount(c.op()));
  if (c.op().Has("piece_count")) {
    const int64_t begin = c.op().Int("piece_begin"), piece = c.op().Int("piece_count");
    if (IsKnown(count) && (begin > count || piece > count - begin)) {
      return InvalidModel("piece_begin = ", begin, " and piece_count = ", piece,
                          " are outside the ", count, " elements of the range");
    }
    count = piece;
  }
  c.SetOutput(0, c.dtype(0), {count});
  return OkStatus();
}

Status LocalizeRange(const OpView& op, const Box& box, std::span<const Box>, std::span<const Box>,
                     AttrList* attrs) {
  attrs->Set("piece_begin", op.Int("piece_begin") + box[0].begin);
  attrs->Set("piece_count", box[0].size());
  return OkStatus();
}

// ---- EyeLike, Trilu -----------------------------------------------------------------------------

Status InferEyeLike(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckRank(c, 0, 2));
  const DType dtype = c.op().Has("dtype") ? c.op().Dtype("dtype") : c.dtype(0);
  if (!kComputeTypes.Has(dtype))
    return InvalidModel("dtype = ", dtype, ", must be one of ", kComputeTypes.Names());
  c.SetOutput(0, dtype, c.input(0).rank_known ? c.dims(0) : Dims{kUnknownDim, kUnknownDim});
  return OkStatus();
}

Status InferTrilu(InferContext& c) {
  MSRT_RETURN_IF_ERROR(RefuseAttrAndInput(c.op(), "k", 1));
  const Type& in = c.input(0);
  if (in.rank_known && in.rank() < 2)
    return InvalidModel("input 0 has shape ", in.dims, ", must have rank 2 or more");
  if (c.has_input(1)) {
    const Type& k = c.input(1);
    const bool scalar = !k.rank_known || k.rank() == 0 ||
                        (k.rank() == 1 && (!IsKnown(k.dims[0]) || k.dims[0] == 1));
    if (!scalar) return InvalidModel("input 1 'k' has shape ", k.dims, ", must be a scalar");
  }
  return InferSameAsFirst(c);
}

// Returns the diagonal; nullopt if it is an input whose value is not known yet.
std::optional<int64_t> DiagonalOf(const OpView& op) {
  if (!op.has_input(1)) return op.Int("k");
  if (op.constant(1) == nullptr) return std::nullopt;
  return IntValues(*op.constant(1))[0];
}

Status ResolveDiagonal(const OpView& op, ResolvedSpace* space) {
  if (!DiagonalOf(op)) return Unsupported("cannot be cut before its diagonal k is known");
  space->inputs[0] = TensorMap::Same(op.input(0).dims);
  DropInputs(1, space);
  return ResolveByOutput(op, space);
}

// Element (row, column) of the piece is (row + row0, column + column0) of the whole, so its
// diagonal moves by row0 - column0.
Status LocalizeDiagonal(const OpView& op, const Box& box, std::span<const Box>,
                        std::span<const Box>, AttrList* attrs) {
  const int rank = box.rank();
  const int64_t rows = op.output(0).dims[rank - 2], columns = op.output(0).dims[rank - 1];
  const int64_t k =
      std::clamp(*DiagonalOf(op), -rows,
                 columns);  // beyond these nothing changes, and the sum cannot overflow
  attrs->Set("k", k + box[rank - 2].begin - box[rank - 1].begin);
  return OkStatus();
}

// ---- entries ------------------------------------------------------------------------------------

constexpr SpaceDef kConstantOfShapeSpace{.localize = LocalizeConstantOfShape,
                                         .resolve = ResolveConstantOfShape};
constexpr SpaceDef kRangeSpace{ParallelOutputAxes, NothingButWholeInputs, OutputIsBox,
                               LocalizeRange};
constexpr SpaceDef kDiagonalSpace{.localize = LocalizeDiagonal, .resolve = ResolveDiagonal};

constexpr AttrDef kConstantOfShapeAttrs[] = {
    {.name = "shape", .kind = AttrKind::kInts, .min_int = 0, .max_count = kMaxRank},
    {.name = "value", .kind = AttrKind::kTensor},
};
constexpr AttrDef kRangeAttrs[] = {
    {.name = "piece_begin", .min_int = 0, .max_int = kMaxRangeElements, .local = true},
    {.name = "piece_count", .min_int = 0, .max_int = kMaxRangeElements, .local = true},
};
constexpr AttrDef kEyeLikeAttrs[] = {{.name = "dtype", .kind = AttrKind::kDType}, {.name = "k"}};
constexpr AttrDef kTriluAttrs[] = {{.name = "upper", .default_int = 1, .min_int = 0, .max_int = 1},
                                   {.name = "k"}};

constexpr ParamDef kConstantOfShapeInputs[] = {{"input", kIndexTypes, ParamDef::kOptional}};
constexpr ParamDef kRangeInputs[] = {
    {"start", kRangeTypes, ParamDef::kRequired, 1},
    {"limit", kRangeTypes, ParamDef::kRequired, 1},
    {"delta", kRangeTypes, ParamDef::kRequired, 1},
};
constexpr ParamDef kEyeLikeInputs[] = {{"input", kComputeTypes}};
constexpr ParamDef kTriluInputs[] = {{"input", kComputeTypes | kF8Types},
                                     {"k", kIndexTypes, ParamDef::kOptional}};

constexpr OpDef kGenerateOps[] = {
    {.name = "ConstantOfShape",
     .attrs = kConstantOfShapeAttrs,
     .inputs = kConstantOfShapeInputs,
     .infer = InferConstantOfShape,
     .space = &kConstantOfShapeSpace},
    {.name = "Range",
     .attrs = kRangeAttrs,
     .inputs = kRangeInputs,
     .infer = InferRange,
     .space = &kRangeSpace},
    {.name = "EyeLike",
     .attrs = kEyeLikeAttrs,
     .inputs = kEyeLikeInputs,
     .infer = InferEyeLike,
     .grad = GradZero,
     .space = &kDiagonalSpace},
    {.name = "Trilu",
     .attrs = kTriluAttrs,
     .inputs = kTriluInputs,
     .infer = InferTrilu,
     .grad = GradTrilu,
     .space = &kDiagonalSpace},
};

}  // namespace

std::span<const OpDef> GenerateOps() { return kGenerateOps; }

}  // namespace msrt
