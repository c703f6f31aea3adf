// Lists of values (ONNX's sequences; its optionals are lists of at most one element). They have no
// kernels: core/run executes them, because a list has no memory in an arena.
#include "ops/families.h"
#include "ops/infer.h"

namespace msrt {
namespace {

constexpr DTypeSet kPositionTypes = {DType::kI32, DType::kI64};
constexpr ParamDef kList = {.name = "list", .types = kAllTypes, .list = true};
constexpr ParamDef kPosition = {.name = "position", .types = kPositionTypes};
constexpr ParamDef kOptionalPosition = {
    .name = "position", .types = kPositionTypes, .kind = ParamDef::kOptional};
constexpr ParamDef kElements = {.name = "elements", .types = kAllTypes, .kind = ParamDef::kRest};

constexpr ParamDef kConstructInputs[] = {kElements};
constexpr ParamDef kInsertInputs[] = {
    kList, {.name = "element", .types = kAllTypes}, kOptionalPosition};
constexpr ParamDef kEraseInputs[] = {kList, kOptionalPosition};
constexpr ParamDef kAtInputs[] = {kList, kPosition};
constexpr ParamDef kListInputs[] = {kList};
constexpr ParamDef kSplitInputs[] = {
    {.name = "tensor", .types = kAllTypes},
    {.name = "split", .types = kPositionTypes, .kind = ParamDef::kOptional}};

// `depth` goes beyond ONNX: 2 is a list of lists.
constexpr AttrDef kEmptyAttrs[] = {{.name = "dtype", .kind = AttrKind::kDType},
                                   {.name = "depth", .default_int = 1, .min_int = 1, .max_int = 8}};
constexpr AttrDef kSplitAttrs[] = {
    {.name = "axis", .min_int = -kMaxRank, .max_int = kMaxRank - 1},
    {.name = "keepdims", .default_int = 1, .min_int = 0, .max_int = 1}};
constexpr AttrDef kConcatAttrs[] = {
    {.name = "axis", .required = true, .min_int = -kMaxRank, .max_int = kMaxRank - 1},
    {.name = "new_axis", .min_int = 0, .max_int = 1}};

Status InferConstruct(InferContext& c) {
  if (c.op().input_count() == 0)
    return InvalidModel("has no elements; an empty list is made by SequenceEmpty");
  Type element = UndeclaredType();
  for (size_t i = 0; i < c.op().input_count(); ++i) {
    if (!c.has_input(i)) return InvalidModel("element ", i, " is left out");
    MSRT_ASSIGN_OR_RETURN(element, JoinTypes(element, c.input(i)));
  }
  c.SetOutput(0, Type::ListOf(std::move(element)));
  return OkStatus();
}

Status InferEmpty(InferContext& c) {
  const DType dtype = c.op().Dtype("dtype");
  Type type = Type::UnrankedTensor(dtype == DType::kNone ? DType::kF32 : dtype);
  for (int64_t d = 0; d < c.op().Int("depth"); ++d) type = Type::ListOf(std::move(type));
  c.SetOutput(0, std::move(type));
  return OkStatus();
}

Status InferInsert(InferContext& c) {
  MSRT_ASSIGN_OR_RETURN(Type element, JoinTypes(*c.input(0).element, c.input(1)));
  c.SetOutput(0, Type::ListOf(std::move(element)));
  return OkStatus();
}

Status InferAt(InferContext& c) {
  c.SetOutput(0, *c.input(0).element);
  return OkStatus();
}

Status InferLength(InferContext& c) {
  c.SetOutput(0, DType::kI64, {});
  return OkStatus();
}

Status InferSplit(InferContext& c) {
  const Type& whole = c.input(0);
  if (!whole.rank_known) {
    c.SetOutput(0, Type::ListOf(whole));
    return OkStatus();
  }
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(c.op().Int("axis"), whole.rank()));
  Type piece = whole;
  if (c.has_input(1)) piece.dims[axis] = kUnknownDim;
  else if (c.op().Int("keepdims") != 0) piece.dims[axis] = 1;
  else piece.dims.erase(axis);
  c.SetOutput(0, Type::ListOf(std::move(piece)));
  return OkStatus();
}

Status InferConcat(InferContext& c) {
  Type whole = *c.input(0).element;
  if (!whole.is_tensor())
    return InvalidModel("the list holds ", whole, ", only tensors can be joined");
  if (whole.rank_known) {
    const bool stack = c.op().Int("new_axis") != 0;
    if (stack && whole.rank() == kMaxRank)
      return InvalidModel("stacked, ", whole, " would have more than ", kMaxRank, " dims");
    MSRT_ASSIGN_OR_RETURN(const int axis,
                          NormalizeAxis(c.op().Int("axis"), whole.rank() + (stack ? 1 : 0)));
    if (stack) whole.dims.insert(axis, kUnknownDim);
    else whole.dims[axis] = kUnknownDim;
  }
  c.SetOutput(0, std::move(whole));
  return OkStatus();
}

Cost NoCost(const OpView&) { return {}; }

constexpr OpDef Entry(std::string_view name, std::span<const ParamDef> inputs, InferFn infer,
                      std::span<const AttrDef> attrs = {}) {
  return {.name = name,
          .attrs = attrs,
          .inputs = inputs,
          .infer = infer,
          .cost = NoCost,
          .traits = kRunByExecutor};
}

constexpr OpDef kListOps[] = {
    Entry("SequenceConstruct", kConstructInputs, InferConstruct),
    Entry("SequenceEmpty", {}, InferEmpty, kEmptyAttrs),
    Entry("SequenceInsert", kInsertInputs, InferInsert),
    Entry("SequenceErase", kEraseInputs, InferSameAsFirst),
    Entry("SequenceAt", kAtInputs, InferAt),
    Entry("SequenceLength", kListInputs, InferLength),
    Entry("SplitToSequence", kSplitInputs, InferSplit, kSplitAttrs),
    Entry("ConcatFromSequence", kListInputs, InferConcat, kConcatAttrs),
};

}  // namespace

std::span<const OpDef> ListOps() { return kListOps; }

}  // namespace msrt
