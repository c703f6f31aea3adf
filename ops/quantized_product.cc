// Products of quantised tensors: MatMulInteger and ConvInteger, which return sums of 32 bits, and
// QLinearMatMul and QLinearConv, which quantise them again. msrt.QuantizedMatMul and
// msrt.QuantizedConv scale the sums, add a bias and a residual, apply an activation, and return
// f32, or quantise the result if y_scale is present. Their shapes and iteration spaces are those of
// MatMul and Conv; scales and zero points follow the operands.
#include <array>

#include "ops/convolution.h"
#include "ops/families.h"
#include "ops/infer.h"
#include "ops/matmul.h"
#include "ops/resolve_space.h"

namespace msrt {
namespace {

// ---- positions of the inputs
// ---------------------------------------------------------------------

constexpr size_t kNone = SIZE_MAX;

struct Operand {
  size_t data, scale, zero;
};
struct Slots {
  Operand a, b;
  size_t y_scale = kNone, y_zero = kNone, bias = kNone, residual = kNone;
};
constexpr Slots kIntegerSlots{.a = {0, kNone, 2}, .b = {1, kNone, 3}};
constexpr Slots kScaledSlots{
    .a = {0, 1, 2}, .b = {3, 4, 5}, .y_scale = 6, .y_zero = 7, .bias = 8, .residual = 9};

bool IsScaled(const OpView& op) { return op.op() != "MatMulInteger" && op.op() != "ConvInteger"; }
const Slots& SlotsOf(const OpView& op) { return IsScaled(op) ? kScaledSlots : kIntegerSlots; }

bool Has(const OpView& op, size_t input) { return input != kNone && op.has_input(input); }

// The node as a plain MatMul or Conv.
class PlainView {
 public:
  explicit PlainView(const OpView& op)
      : inputs_{&op.input(SlotsOf(op).a.data), &op.input(SlotsOf(op).b.data), nullptr, nullptr},
        outputs_{op.has_output(0) ? &op.output(0) : nullptr},
        view_(op) {
    if (Has(op, SlotsOf(op).bias)) inputs_[2] = &op.input(SlotsOf(op).bias);
    if (Has(op, SlotsOf(op).residual)) inputs_[3] = &op.input(SlotsOf(op).residual);
    view_ = op.WithTypes(std::span<const Type* const>(inputs_).first(InputCount(op)), outputs_);
  }
  // Operands, then bias and residual if present.
  static size_t InputCount(const OpView& op) {
    return Has(op, SlotsOf(op).residual) ? 4 : Has(op, SlotsOf(op).bias) ? 3 : 2;
  }
  PlainView(const PlainView&) = delete;
  PlainView& operator=(const PlainView&) = delete;

  const OpView& operator*() const { return view_; }

 private:
  std::array<const Type*, 4> inputs_;
  std::array<const Type*, 1> outputs_;
  OpView view_;
};

// ---- inference ----------------------------------------------------------------------------------

Status CheckOneElement(const InferContext& c, size_t input) {
  if (!Has(c.op(), input) || !c.input(input).rank_known || MayBeOneElement(c.dims(input)))
    return OkStatus();
  return InvalidModel("input ", input, " has shape ", c.dims(input), ", must be one number");
}

// The type of the sums, of real numbers, or of quantised results.
Result<DType> ResultType(const InferContext& c) {
  const Slots& slots = SlotsOf(c.op());
  if (slots.y_zero == kNone) return DType::kI32;
  if (Has(c.op(), slots.y_scale) != Has(c.op(), slots.y_zero))
    return InvalidModel("y_scale and y_zero_point must be given together");
  return Has(c.op(), slots.y_zero) ? c.dtype(slots.y_zero) : DType::kF32;
}

Status InferProduct(InferContext& c, InferFn infer) {
  const Slots& slots = SlotsOf(c.op());
  const PlainView plain(c.op());
  Type out;
  InferContext inner(*plain, std::span(&out, 1));
  MSRT_RETURN_IF_ERROR(infer(inner));
  MSRT_ASSIGN_OR_RETURN(out.dtype, ResultType(c));
  MSRT_RETURN_IF_ERROR(CheckOneElement(c, slots.y_scale));
  MSRT_RETURN_IF_ERROR(CheckOneElement(c, slots.y_zero));
  c.SetOutput(0, std::move(out));
  return OkStatus();
}

// A scale or zero point: one number, a list with one for each row of A (column of B), or a tensor
// that broadcasts to the operand and has one element along the depth.
bool IsTransposedB(const OpView& op) {
  return op.op() == "QuantizedMatMul" && op.Int("transB") != 0;
}

Status CheckMatrixParameter(const InferContext& c, size_t input, size_t operand, bool rows) {
  if (!Has(c.op(), input) || !c.input(input).rank_known || !c.input(operand).rank_known)
    return OkStatus();
  const Dims &p = c.dims(input), &matrix = c.dims(operand);
  if (MayBeOneElement(p)) return OkStatus();
  if (matrix.rank() < 2)
    return InvalidModel("input ", input, " has shape ", p, ", must be one number for a vector");
  const bool first =
      rows || IsTransposedB(c.op());  // which of the last two dims counts the rows or columns
  if (p.rank() == 1) {
    const int64_t lines = matrix[matrix.rank() - (first ? 2 : 1)];
    return SameDim(p[0], lines,
                   StrCat("the length of input ", input, " and the ", rows ? "rows" : "columns",
                          " of input ", operand))
        .status();
  }
  const int64_t depth = p[p.rank() - (first ? 1 : 2)];
  if (IsKnown(depth) && depth != 1)
    return InvalidModel("input ", input, " has shape ", p, ", must have the dim 1 along the depth");
  return CheckBroadcastsTo(p, matrix, StrCat("input ", input));
}

Status InferQuantizedMatMul(InferContext& c) {
  const Slots& slots = SlotsOf(c.op());
  for (size_t p : {slots.a.scale, slots.a.zero})
    MSRT_RETURN_IF_ERROR(CheckMatrixParameter(c, p, slots.a.data, true));
  for (size_t p : {slots.b.scale, slots.b.zero})
    MSRT_RETURN_IF_ERROR(CheckMatrixParameter(c, p, slots.b.data, false));
  return InferProduct(c, InferFusedMatMul);
}

Status InferQuantizedConv(InferContext& c) {
  const Slots& slots = SlotsOf(c.op());
  for (size_t p : {slots.a.scale, slots.a.zero}) MSRT_RETURN_IF_ERROR(CheckOneElement(c, p));
  for (size_t p : {slots.b.scale, slots.b.zero}) {
    if (!Has(c.op(), p) || !c.input(p).rank_known || MayBeOneElement(c.dims(p))) continue;
    MSRT_RETURN_IF_ERROR(CheckRank(c, p, 1));
    const Type& w = c.input(slots.b.data);
    if (!w.rank_known || w.rank() == 0) continue;
    MSRT_RETURN_IF_ERROR(SameDim(c.dims(p)[0], w.dims[0],
                                 StrCat("the length of input ", p, " and the output channels of W"))
                             .status());
  }
  return InferProduct(c, InferConvolution);
}

// ---- iteration spaces ---------------------------------------------------------------------------

// The space of the plain product. Partial sums can be added up; parts that were scaled, added to or
// quantised cannot. Inputs of one element are read whole.
Result<ResolvedSpace> ResolvePlain(const OpView& op, const SpaceDef& of_plain,
                                   ResolvedSpace* space) {
  const Slots& slots = SlotsOf(op);
  MSRT_ASSIGN_OR_RETURN(ResolvedSpace plain, ResolveSpace(of_plain, *PlainView(op)));
  for (int i = 0; i < plain.axes.rank(); ++i) {
    const Axis& axis = plain.axes[i];
    if (axis.kind == AxisKind::kReduce && IsScaled(op))
      space->axes.Add(AxisKind::kWhole, axis.extent);
    else space->axes.Add(axis.kind, axis.extent, axis.monoid);
  }
  space->inputs[slots.a.data] = plain.inputs[0];
  space->inputs[slots.b.data] = plain.inputs[1];
  if (Has(op, slots.bias)) space->inputs[slots.bias] = plain.inputs[2];
  if (Has(op, slots.residual)) space->inputs[slots.residual] = plain.inputs[3];
  space->outputs = plain.outputs;
  return plain;
}

// A scale or zero point of more than one element follows its operand.
void ResolveMatMulParameter(const OpView& op, size_t input, const TensorMap& operand, bool rows,
                            ResolvedSpace* space) {
  if (!Has(op, input) || op.input(input).elements() == 1) return;
  const Dims& p = op.input(input).dims;
  const size_t rank = operand.dims.size();
  std::vector<DimMap>& dims = space->inputs[input].dims;
  if (p.rank() == 1) {
    dims[0] = operand.dims[rank - (rows || IsTransposedB(op) ? 2 : 1)];
    return;
  }
  for (size_t d = 0; d < p.size(); ++d) {
    if (p[static_cast<int>(d)] != 1) dims[d] = operand.dims[rank - p.size() + d];
  }
}

Status ResolveQuantizedMatMul(const OpView& op, ResolvedSpace* space) {
  MSRT_ASSIGN_OR_RETURN(const ResolvedSpace plain, ResolvePlain(op, kMatMulSpace, space));
  const Slots& slots = SlotsOf(op);
  for (size_t p : {slots.a.scale, slots.a.zero})
    ResolveMatMulParameter(op, p, plain.inputs[0], true, space);
  for (size_t p : {slots.b.scale, slots.b.zero})
    ResolveMatMulParameter(op, p, plain.inputs[1], false, space);
  return OkStatus();
}

Status ResolveQuantizedConv(const OpView& op, ResolvedSpace* space) {
  MSRT_RETURN_IF_ERROR(ResolvePlain(op, kConvSpace, space).status());
  const Slots& slots = SlotsOf(op);
  for (size_t p : {slots.b.scale, slots.b.zero}) {
    if (Has(op, p) && op.input(p).elements() != 1)
      space->inputs[p] = TensorMap::Same(op.input(p).dims, 1);
  }
  return OkStatus();
}

Status ConvLocalizeOf(const OpView& op, const Box& box, std::span<const Box> inputs,
                      std::span<const Box> outputs, AttrList* attrs) {
  return kConvSpace.localize(*PlainView(op), box, inputs, outputs, attrs);
}

constexpr SpaceDef kQuantizedMatMulSpace{.resolve = ResolveQuantizedMatMul};
constexpr SpaceDef kQuantizedConvSpace{.localize = ConvLocalizeOf, .resolve = ResolveQuantizedConv};

template <CostFn kPlainCost>
Cost ProductCost(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  cost.flops = kPlainCost(*PlainView(op)).flops;
  return cost;
}

// ---- entries ------------------------------------------------------------------------------------

constexpr DTypeSet kBytes{DType::kI8, DType::kU8};
constexpr DTypeSet kEightBits = kBytes | kF8Types;
constexpr DTypeSet kScaleTypes{DType::kF32, DType::kF16, DType::kBF16};

constexpr ParamDef kMatMulIntegerInputs[] = {
    {.name = "A", .types = kBytes, .group = 1},
    {.name = "B", .types = kBytes, .group = 2},
    {.name = "a_zero_point", .types = kBytes, .kind = ParamDef::kOptional, .group = 1},
    {.name = "b_zero_point", .types = kBytes, .kind = ParamDef::kOptional, .group = 2},
};
constexpr ParamDef kConvIntegerInputs[] = {
    {.name = "x", .types = kBytes, .group = 1},
    {.name = "w", .types = kBytes, .group = 2},
    {.name = "x_zero_point", .types = kBytes, .kind = ParamDef::kOptional, .group = 1},
    {.name = "w_zero_point", .types = kBytes, .kind = ParamDef::kOptional, .group = 2},
};
constexpr ParamDef kQLinearMatMulInputs[] = {
    {.name = "a", .types = kEightBits, .group = 1},
    {.name = "a_scale", .types = kScaleTypes, .group = 3},
    {.name = "a_zero_point", .types = kEightBits, .group = 1},
    {.name = "b", .types = kEightBits, .group = 2},
    {.name = "b_scale", .types = kScaleTypes, .group = 3},
    {.name = "b_zero_point", .types = kEightBits, .group = 2},
    {.name = "y_scale", .types = kScaleTypes, .group = 3},
    {.name = "y_zero_point", .types = kEightBits},
};
constexpr ParamDef kQLinearConvInputs[] = {
    {.name = "x", .types = kBytes, .group = 1},
    {.name = "x_scale", .types = DTypeSet{DType::kF32}},
    {.name = "x_zero_point", .types = kBytes, .group = 1},
    {.name = "w", .types = kBytes, .group = 2},
    {.name = "w_scale", .types = DTypeSet{DType::kF32}},
    {.name = "w_zero_point", .types = kBytes, .group = 2},
    {.name = "y_scale", .types = DTypeSet{DType::kF32}},
    {.name = "y_zero_point", .types = kBytes},
    {.name = "B", .types = DTypeSet{DType::kI32}, .kind = ParamDef::kOptional},
};

// Real inputs and outputs are f32 only; other types need a Cast.
constexpr ParamDef kFusedProductInputs[] = {
    {.name = "a", .types = kBytes, .group = 1},
    {.name = "a_scale", .types = DTypeSet{DType::kF32}},
    {.name = "a_zero_point", .types = kBytes, .kind = ParamDef::kOptional, .group = 1},
    {.name = "b", .types = kBytes, .group = 2},
    {.name = "b_scale", .types = DTypeSet{DType::kF32}},
    {.name = "b_zero_point", .types = kBytes, .kind = ParamDef::kOptional, .group = 2},
    {.name = "y_scale", .types = DTypeSet{DType::kF32}, .kind = ParamDef::kOptional},
    {.name = "y_zero_point", .types = kBytes, .kind = ParamDef::kOptional},
    {.name = "bias", .types = DTypeSet{DType::kF32}, .kind = ParamDef::kOptional},
    {.name = "Z", .types = DTypeSet{DType::kF32}, .kind = ParamDef::kOptional},
};
constexpr AttrDef kQuantizedMatMulAttrs[] = {{.name = "transB", .min_int = 0, .max_int = 1},
                                             kActivationAttr,
                                             kActivationAlphaAttr,
                                             kActivationBetaAttr};

constexpr OpDef MatMulLike(std::string_view name, std::span<const ParamDef> inputs) {
  return {.name = name,
          .inputs = inputs,
          .infer = InferQuantizedMatMul,
          .space = &kQuantizedMatMulSpace,
          .cost = ProductCost<MatMulCost>};
}
constexpr OpDef ConvLike(std::string_view name, std::span<const ParamDef> inputs) {
  return {.name = name,
          .attrs = kConvAttrs,
          .inputs = inputs,
          .infer = InferQuantizedConv,
          .space = &kQuantizedConvSpace,
          .cost = ProductCost<ConvCost>};
}

constexpr OpDef kQuantizedProductOps[] = {
    MatMulLike("MatMulInteger", kMatMulIntegerInputs),
    MatMulLike("QLinearMatMul", kQLinearMatMulInputs),
    ConvLike("ConvInteger", kConvIntegerInputs),
    ConvLike("QLinearConv", kQLinearConvInputs),
    {.name = "QuantizedMatMul",
     .domain = "msrt",
     .version = 1,
     .attrs = kQuantizedMatMulAttrs,
     .inputs = kFusedProductInputs,
     .infer = InferQuantizedMatMul,
     .space = &kQuantizedMatMulSpace,
     .cost = ProductCost<MatMulCost>},
    {.name = "QuantizedConv",
     .domain = "msrt",
     .version = 1,
     .attrs = kFusedConvAttrs,
     .inputs = kFusedProductInputs,
     .infer = InferQuantizedConv,
     .space = &kQuantizedConvSpace,
     .cost = ProductCost<ConvCost>},
};

}  // namespace

std::span<const OpDef> QuantizedProductOps() { return kQuantizedProductOps; }

}  // namespace msrt
