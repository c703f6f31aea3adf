// Conversion between real numbers and few bits: QuantizeLinear, DequantizeLinear,
// DynamicQuantizeLinear, and msrt.QuantizedAdd, the quantised sum of two quantised tensors of one
// shape, with an activation before it is quantised. A scale and a zero point belong to the whole
// tensor, to one index of an axis, or to a block of neighbours along an axis.
#include "core/base/checked_math.h"
#include "ops/activation.h"
#include "ops/families.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

constexpr size_t kX = 0, kScale = 1, kZeroPoint = 2;

constexpr DTypeSet kShortFloats{DType::kF32, DType::kF16, DType::kBF16};
constexpr DTypeSet kQuantizedTypes =
    kStorageTypes | DTypeSet{DType::kI8, DType::kU8, DType::kI16, DType::kU16};

// ---- granularity of a scale --------------------------------------------------------------------

enum class Granularity : uint8_t { kTensor, kAxis, kBlock };

struct Scaling {
  Granularity granularity = Granularity::kTensor;
  int axis = 0;
};

// Requires known ranks. A list of unknown length counts as one along the axis: at run time it is
// that or has one element.
Result<Scaling> ScalingOf(const OpView& op, const Dims& x, const Dims& scale) {
  const bool blocked = op.Int("block_size") > 0 && scale.rank() == x.rank() && x.rank() > 0;
  if (!blocked && (scale.rank() == 0 || (scale.rank() == 1 && scale[0] == 1))) return Scaling{};
  if (x.rank() == 0 && MayBeOneElement(scale)) return Scaling{};
  if (!blocked && scale.rank() != 1) {
    return InvalidModel("the scale has shape ", scale,
                        ", must be one number, a list along 'axis' or, with 'block_size', of rank ",
                        x.rank());
  }
  if (x.rank() == 0)
    return InvalidModel("the scale has shape ", scale, ", must be one number for an x of rank 0");
  // A tensor of rank 1 has only one axis, whatever the default says.
  MSRT_ASSIGN_OR_RETURN(const int axis,
                        NormalizeAxis(x.rank() == 1 ? 0 : op.Int("axis"), x.rank()));
  return Scaling{blocked ? Granularity::kBlock : Granularity::kAxis, axis};
}

Status CheckBlocks(const OpView& op, const Dims& x, const Dims& scale, int axis) {
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis)
      MSRT_RETURN_IF_ERROR(
          SameDim(x[i], scale[i], StrCat("dim ", i, " of x and of its scale")).status());
  }
  if (!IsKnown(x[axis]) || !IsKnown(scale[axis])) return OkStatus();
  const int64_t block = op.Int("block_size"), offset = op.Int("block_offset");
  int64_t end;
  if (!CheckedAdd(x[axis], offset, &end))
    return InvalidModel("block_offset = ", offset, " is too large");
  const int64_t blocks = x[axis] == 0 ? 0 : CeilDiv(end, block);
  if (offset < block && scale[axis] == blocks) return OkStatus();
  return InvalidModel("the scale has ", scale[axis], " blocks along axis ", axis, ", must have ",
                      blocks, " for ", x[axis], " elements with block_size = ", block,
                      " and block_offset = ", offset);
}

// Unknown dims are accepted.
Status CheckScale(const InferContext& c) {
  const Type &x = c.input(kX), &scale = c.input(kScale);
  if (c.has_input(kZeroPoint) && c.input(kZeroPoint).rank_known && scale.rank_known) {
    const Dims& zero = c.dims(kZeroPoint);
    bool same = zero.rank() == scale.rank();
    for (int i = 0; same && i < zero.rank(); ++i)
      same = !IsKnown(zero[i]) || !IsKnown(scale.dims[i]) || zero[i] == scale.dims[i];
    if (!same && !(MayBeOneElement(zero) && MayBeOneElement(scale.dims))) {
      return InvalidModel("the zero point has shape ", zero, ", must have the shape of the scale ",
                          scale.dims);
    }
  }
  if (!x.rank_known || !scale.rank_known) return OkStatus();
  MSRT_ASSIGN_OR_RETURN(const Scaling s, ScalingOf(c.op(), x.dims, scale.dims));
  if (s.granularity == Granularity::kBlock) return CheckBlocks(c.op(), x.dims, scale.dims, s.axis);
  if (s.granularity == Granularity::kAxis && IsKnown(scale.dims[0])) {
    return SameDim(x.dims[s.axis], scale.dims[0],
                   StrCat("dim ", s.axis, " of x and the length of its scale"))
        .status();
  }
  return OkStatus();
}

// ---- inference ----------------------------------------------------------------------------------

Status InferAs(InferContext& c, DType dtype) {
  Type type = c.input(kX);
  type.dtype = dtype;
  c.SetOutput(0, std::move(type));
  return CheckScale(c);
}

Status InferQuantize(InferContext& c) {
  const DType given = c.op().Dtype("output_dtype");
  if (given != DType::kNone && !kQuantizedTypes.Has(given)) {
    return InvalidModel("output_dtype = ", given, ", must be one of ", kQuantizedTypes.Names());
  }
  const DType precision = c.op().Dtype("precision");
  if (precision != DType::kNone && !kFloatTypes.Has(precision)) {
    return InvalidModel("precision = ", precision, ", must be one of ", kFloatTypes.Names());
  }
  if (!c.has_input(kZeroPoint)) return InferAs(c, given == DType::kNone ? DType::kU8 : given);
  const DType zero = c.dtype(kZeroPoint);
  if (given != DType::kNone && given != zero)
    return InvalidModel("output_dtype = ", given, ", but the zero point is of type ", zero);
  return InferAs(c, zero);
}

Status InferDequantize(InferContext& c) {
  const DType given = c.op().Dtype("output_dtype");
  if (given != DType::kNone && !kShortFloats.Has(given)) {
    return InvalidModel("output_dtype = ", given, ", must be one of ", kShortFloats.Names());
  }
  return InferAs(c, given == DType::kNone ? c.dtype(kScale) : given);
}

Status InferDynamicQuantize(InferContext& c) {
  Type y = c.input(kX);
  y.dtype = DType::kU8;
  c.SetOutput(0, std::move(y));
  c.SetOutput(1, DType::kF32, {});
  c.SetOutput(2, DType::kU8, {});
  return OkStatus();
}

// ---- iteration space ----------------------------------------------------------------------------

// Returns the map of the scale, and of the zero point.
Result<TensorMap> ScaleMap(const OpView& op) {
  const Dims& scale = op.input(kScale).dims;
  MSRT_ASSIGN_OR_RETURN(const Scaling s, ScalingOf(op, op.input(kX).dims, scale));
  if (s.granularity == Granularity::kTensor) return TensorMap::Whole(scale);
  if (s.granularity == Granularity::kAxis) return TensorMap::Same(scale, s.axis);
  TensorMap blocks = TensorMap::Same(scale);
  blocks.dims[static_cast<size_t>(s.axis)] =
      DimMap::Block(s.axis, 1, scale[s.axis], op.Int("block_size"), op.Int("block_offset"));
  return blocks;
}

Status ResolveQuantization(const OpView& op, ResolvedSpace* space) {
  for (const Type* t : {&op.input(kX), &op.output(0)}) {
    if (BitsOf(t->dtype) < 8)
      return Unsupported("elements of type ", t->dtype,
                         " share bytes, so the node cannot be cut; cast first");
  }
  space->inputs[kX] = TensorMap::Same(op.input(kX).dims);
  MSRT_ASSIGN_OR_RETURN(space->inputs[kScale], ScaleMap(op));
  if (op.has_input(kZeroPoint) && op.input(kZeroPoint).rank() == op.input(kScale).rank())
    space->inputs[kZeroPoint] = space->inputs[kScale];
  return ResolveByOutput(op, space);
}

// A piece may begin inside a block.
Status QuantizationLocalize(const OpView& op, const Box& box, std::span<const Box>,
                            std::span<const Box>, AttrList* attrs) {
  MSRT_ASSIGN_OR_RETURN(const Scaling s, ScalingOf(op, op.input(kX).dims, op.input(kScale).dims));
  if (s.granularity != Granularity::kBlock) return OkStatus();
  attrs->Set("block_offset", (box[s.axis].begin + op.Int("block_offset")) % op.Int("block_size"));
  return OkStatus();
}

constexpr SpaceDef kQuantizationSpace{.localize = QuantizationLocalize,
                                      .resolve = ResolveQuantization};

// ---- sums ---------------------------------------------------------------------------------------

constexpr size_t kOther = 3, kSumZero = 7;

Status InferQuantizedAdd(InferContext& c) {
  for (const size_t i : {1, 2, 4, 5, 6, 7}) {
    if (c.input(i).rank_known && !MayBeOneElement(c.dims(i))) {
      return InvalidModel("input ", i, " has shape ", c.dims(i), ", must be one number");
    }
  }
  Type type = c.input(kX).rank_known ? c.input(kX) : c.input(kOther);
  type.dtype = c.dtype(kSumZero);
  if (c.input(kX).rank_known && c.input(kOther).rank_known) {
    MSRT_RETURN_IF_ERROR(CheckRank(c, kOther, type.rank()));
    for (int i = 0; i < type.rank(); ++i) {
      MSRT_ASSIGN_OR_RETURN(
          type.dims[i], SameDim(type.dims[i], c.dims(kOther)[i], StrCat("dim ", i, " of a and b")));
    }
  }
  c.SetOutput(0, std::move(type));
  return OkStatus();
}

Status ResolveQuantizedAdd(const OpView& op, ResolvedSpace* space) {
  for (size_t i : {kX, kOther}) space->inputs[i] = TensorMap::Same(op.input(i).dims);
  return ResolveByOutput(op, space);
}

constexpr SpaceDef kQuantizedAddSpace{.resolve = ResolveQuantizedAdd};

// ---- entries ------------------------------------------------------------------------------------

constexpr AttrDef kAxisAttr{
    .name = "axis", .default_int = 1, .min_int = -kMaxRank, .max_int = kMaxRank - 1};
constexpr AttrDef kBlockSizeAttr{.name = "block_size", .min_int = 0, .max_int = int64_t{1} << 56};
constexpr AttrDef kBlockOffsetAttr{
    .name = "block_offset", .min_int = 0, .max_int = int64_t{1} << 56, .local = true};
constexpr AttrDef kOutputTypeAttr{.name = "output_dtype", .kind = AttrKind::kDType};

constexpr AttrDef kQuantizeAttrs[] = {
    kAxisAttr,
    kBlockSizeAttr,
    kOutputTypeAttr,
    {.name = "precision",
     .kind = AttrKind::kDType},  // of the division; by default that of the scale
    {.name = "saturate", .default_int = 1, .min_int = 0, .max_int = 1},
    kBlockOffsetAttr,
};
constexpr AttrDef kDequantizeAttrs[] = {kAxisAttr, kBlockSizeAttr, kOutputTypeAttr,
                                        kBlockOffsetAttr};

constexpr ParamDef kQuantizeInputs[] = {
    {.name = "x", .types = kShortFloats | DTypeSet{DType::kI32}},
    {.name = "y_scale", .types = kShortFloats | DTypeSet{DType::kI32}},
    {.name = "y_zero_point", .types = kQuantizedTypes, .kind = ParamDef::kOptional},
};
constexpr ParamDef kDequantizeInputs[] = {
    {.name = "x", .types = kQuantizedTypes | DTypeSet{DType::kI32}, .group = 1},
    {.name = "x_scale", .types = kShortFloats},
    {.name = "x_zero_point",
     .types = kQuantizedTypes | DTypeSet{DType::kI32},
     .kind = ParamDef::kOptional,
     .group = 1},
};
constexpr ParamDef kDynamicInputs[] = {{.name = "x", .types = DTypeSet{DType::kF32}}};

constexpr DTypeSet kBytes{DType::kI8, DType::kU8};
constexpr ParamDef kSumInputs[] = {
    {.name = "a", .types = kBytes, .group = 1},
    {.name = "a_scale", .types = DTypeSet{DType::kF32}},
    {.name = "a_zero_point", .types = kBytes, .group = 1},
    {.name = "b", .types = kBytes, .group = 2},
    {.name = "b_scale", .types = DTypeSet{DType::kF32}},
    {.name = "b_zero_point", .types = kBytes, .group = 2},
    {.name = "y_scale", .types = DTypeSet{DType::kF32}},
    {.name = "y_zero_point", .types = kBytes},
};
constexpr AttrDef kSumAttrs[] = {kActivationAttr, kActivationAlphaAttr, kActivationBetaAttr};

constexpr OpDef kQuantizationOps[] = {
    {.name = "QuantizeLinear",
     .attrs = kQuantizeAttrs,
     .inputs = kQuantizeInputs,
     .infer = InferQuantize,
     .space = &kQuantizationSpace},
    // Not differentiable: its data are integers, and a scale belongs to them.
    {.name = "DequantizeLinear",
     .attrs = kDequantizeAttrs,
     .inputs = kDequantizeInputs,
     .infer = InferDequantize,
     .space = &kQuantizationSpace},
    // Its scale depends on all of x.
    {.name = "DynamicQuantizeLinear",
     .inputs = kDynamicInputs,
     .min_outputs = 3,
     .max_outputs = 3,
     .infer = InferDynamicQuantize},
    {.name = "QuantizedAdd",
     .domain = "msrt",
     .version = 1,
     .attrs = kSumAttrs,
     .inputs = kSumInputs,
     .infer = InferQuantizedAdd,
     .space = &kQuantizedAddSpace,
     .traits = kElementwise},
};

}  // namespace

std::span<const OpDef> QuantizationOps() { return kQuantizationOps; }

}  // namespace msrt
