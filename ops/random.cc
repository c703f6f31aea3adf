// Random ops. Each element is a function of the seed and of its own index in the whole tensor, so
// that no split changes it and every run repeats it: RandomNormal, RandomUniform and their -Like
// forms, Bernoulli, Multinomial.
#include "ops/families.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

Status CheckType(DType dtype, DTypeSet allowed) {
  if (allowed.Has(dtype)) return OkStatus();
  return InvalidModel("the output has element type ", dtype, ", must be one of ", allowed.Names(),
                      ": set dtype");
}

Status InferRandomShape(InferContext& c) {
  const DType dtype = c.op().Has("dtype") ? c.op().Dtype("dtype") : DType::kF32;
  MSRT_RETURN_IF_ERROR(CheckType(dtype, kFloatTypes));
  c.SetOutput(0, dtype, Dims(c.op().Ints("shape")));
  return OkStatus();
}

Status InferLike(InferContext& c, DTypeSet allowed) {
  Type type = c.input(0);
  if (c.op().Has("dtype")) type.dtype = c.op().Dtype("dtype");
  MSRT_RETURN_IF_ERROR(CheckType(type.dtype, allowed));
  c.SetOutput(0, type);
  return OkStatus();
}
Status InferRandomLike(InferContext& c) { return InferLike(c, kFloatTypes); }
Status InferBernoulli(InferContext& c) { return InferLike(c, kComputeTypes); }

Status InferMultinomial(InferContext& c) {
  const DType dtype = c.op().Has("dtype") ? c.op().Dtype("dtype") : DType::kI32;
  MSRT_RETURN_IF_ERROR(CheckType(dtype, kIndexTypes));
  MSRT_RETURN_IF_ERROR(CheckRank(c, 0, 2));
  const Type& x = c.input(0);
  const int64_t rows = x.rank_known ? x.dims[0] : kUnknownDim, samples = c.op().Int("sample_size");
  if (x.rank_known && x.dims[1] == 0 && rows != 0 && samples != 0)
    return InvalidModel("input 0 ", x.dims, " has no class to choose");
  c.SetOutput(0, dtype, {rows, samples});
  return OkStatus();
}

// ---- iteration space ----------------------------------------------------------------------------

// The axes of the output, each parallel. A piece knows its position in the whole.
Status SameAsOutput(const OpView& op, const Box& box, std::span<Box> inputs) {
  if (op.has_input(0)) inputs[0] = box;
  return OkStatus();
}

Status RowsOfOutput(const OpView& op, const Box& box, std::span<Box> inputs) {
  inputs[0].push_back(box[0]);
  inputs[0].push_back({0, op.input(0).dims[1]});
  return OkStatus();
}

// For a piece of a piece, positions add up and the whole stays the same.
void LocalizePosition(const OpView& op, const Box& box, AttrList* attrs) {
  const bool piece = op.Has("whole_shape");
  const auto begin = op.Ints("piece_begin"), whole = op.Ints("whole_shape");
  std::vector<int64_t> place, shape;
  for (int i = 0; i < box.rank(); ++i) {
    place.push_back(box[i].begin + (piece ? begin[static_cast<size_t>(i)] : 0));
    shape.push_back(piece ? whole[static_cast<size_t>(i)] : op.output(0).dims[i]);
  }
  attrs->Set("piece_begin", place);
  attrs->Set("whole_shape", shape);
}

Status LocalizeRandom(const OpView& op, const Box& box, std::span<const Box>, std::span<const Box>,
                      AttrList* attrs) {
  LocalizePosition(op, box, attrs);
  if (op.Has("shape")) attrs->Set("shape", ExtentsOf(box));
  if (op.op() == "Multinomial") attrs->Set("sample_size", box[1].size());
  return OkStatus();
}

constexpr SpaceDef kElementSpace{ParallelOutputAxes, SameAsOutput, OutputIsBox, LocalizeRandom};
constexpr SpaceDef kRowSpace{ParallelOutputAxes, RowsOfOutput, OutputIsBox, LocalizeRandom};

// ---- entries ------------------------------------------------------------------------------------

constexpr AttrDef kDtype{.name = "dtype", .kind = AttrKind::kDType};
// Without a seed, the name of the node is the seed: nodes differ, runs do not.
constexpr AttrDef kSeed{.name = "seed", .kind = AttrKind::kFloat};
constexpr AttrDef kShape{.name = "shape",
                         .kind = AttrKind::kInts,
                         .required = true,
                         .min_int = 0,
                         .max_count = kMaxRank};
constexpr AttrDef kPieceBegin{.name = "piece_begin",
                              .kind = AttrKind::kInts,
                              .min_int = 0,
                              .max_count = kMaxRank,
                              .local = true};
constexpr AttrDef kWholeShape{.name = "whole_shape",
                              .kind = AttrKind::kInts,
                              .min_int = 0,
                              .max_int = kMaxElements,
                              .max_count = kMaxRank,
                              .local = true};
constexpr AttrDef kMean{.name = "mean", .kind = AttrKind::kFloat},
    kScale{.name = "scale", .kind = AttrKind::kFloat, .default_float = 1};
constexpr AttrDef kLow{.name = "low", .kind = AttrKind::kFloat},
    kHigh{.name = "high", .kind = AttrKind::kFloat, .default_float = 1};

constexpr AttrDef kNormalAttrs[] = {kShape, kDtype, kSeed, kMean, kScale, kPieceBegin, kWholeShape};
constexpr AttrDef kUniformAttrs[] = {kShape, kDtype, kSeed, kLow, kHigh, kPieceBegin, kWholeShape};
constexpr AttrDef kNormalLikeAttrs[] = {kDtype, kSeed, kMean, kScale, kPieceBegin, kWholeShape};
constexpr AttrDef kUniformLikeAttrs[] = {kDtype, kSeed, kLow, kHigh, kPieceBegin, kWholeShape};
constexpr AttrDef kBernoulliAttrs[] = {kDtype, kSeed, kPieceBegin, kWholeShape};
constexpr AttrDef kMultinomialAttrs[] = {
    {.name = "sample_size", .default_int = 1, .min_int = 0, .max_int = kMaxElements},
    kDtype,
    kSeed,
    kPieceBegin,
    kWholeShape};

constexpr ParamDef kLikeInputs[] = {{"input", kComputeTypes}};
constexpr ParamDef kProbabilityInputs[] = {{"input", kFloatTypes}};

constexpr OpDef kRandomOps[] = {
    {.name = "RandomNormal",
     .attrs = kNormalAttrs,
     .infer = InferRandomShape,
     .space = &kElementSpace,
     .effect = Effect::kRandom},
    {.name = "RandomUniform",
     .attrs = kUniformAttrs,
     .infer = InferRandomShape,
     .space = &kElementSpace,
     .effect = Effect::kRandom},
    {.name = "RandomNormalLike",
     .attrs = kNormalLikeAttrs,
     .inputs = kLikeInputs,
     .infer = InferRandomLike,
     .space = &kElementSpace,
     .effect = Effect::kRandom},
    {.name = "RandomUniformLike",
     .attrs = kUniformLikeAttrs,
     .inputs = kLikeInputs,
     .infer = InferRandomLike,
     .space = &kElementSpace,
     .effect = Effect::kRandom},
    {.name = "Bernoulli",
     .attrs = kBernoulliAttrs,
     .inputs = kProbabilityInputs,
     .infer = InferBernoulli,
     .space = &kElementSpace,
     .effect = Effect::kRandom},
    {.name = "Multinomial",
     .attrs = kMultinomialAttrs,
     .inputs = kProbabilityInputs,
     .infer = InferMultinomial,
     .space = &kRowSpace,
     .effect = Effect::kRandom},
};

}  // namespace

std::span<const OpDef> RandomOps() { return kRandomOps; }

}  // namespace msrt
