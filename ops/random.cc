// Random ops: RandomNormal, RandomUniform and their -Like forms, Bernoulli, Multinomial, Dropout.
//
// An element is a function of four numbers and of nothing else, so that neither a split of the work
// nor a rewrite of the graph changes it:
//   seed    attribute of the node, as in ONNX; nodes without one share one seed
//   stream  attribute of the node: which draw of the model this is. Unique in a module, unless a
//           node is copied to be computed again: the copies draw the same numbers, on purpose.
//           Whatever moves or copies a node keeps it. Validation gives a node without a stream the
//           smallest number that no node has, in the order of graphs and nodes.
//   step    the input "step", an i64 scalar: which time the draw is made. Zero if it is omitted.
//   index   of the element in the whole tensor, not in the piece. A tensor whose place in the whole
//           is known only during a run, because a rank has some of the samples of a batch, has it
//           in the input "position": the first row is where it begins, the second the dims of the
//           whole.
//
// Models rarely pass steps. Before any pass, core/passes/thread_steps.h adds them: an entry counts
// the runs of its session in a state slot, and a graph that is called gets a step derived from its
// caller's, so that two calls, two iterations and two runs differ while a reset session repeats.
// With a step, a random op is a pure function: it may be merged, moved, copied and dropped.
#include "ops/families.h"
#include "ops/grad_builder.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

Status CheckType(DType dtype, DTypeSet allowed) {
  if (allowed.Has(dtype)) return OkStatus();
  return InvalidModel("the output has element type ", dtype, ", must be one of ", allowed.Names(),
                      ": set dtype");
}

Status CheckStep(const InferContext& c, size_t input) {
  return c.has_input(input) ? CheckRank(c, input, 0) : OkStatus();
}

// A row of where the tensor begins and one of the dims of the whole.
Status CheckPosition(const InferContext& c, size_t input) {
  if (!c.has_input(input)) return OkStatus();
  MSRT_RETURN_IF_ERROR(CheckRank(c, input, 2));
  const Type &position = c.input(input), &x = c.input(0);
  if (!position.rank_known) return OkStatus();
  MSRT_RETURN_IF_ERROR(SameDim(position.dims[0], 2, "dim 0 of position").status());
  if (!x.rank_known) return OkStatus();
  return SameDim(position.dims[1], x.rank(), "dim 1 of position, by dim of the output").status();
}

Status InferRandomShape(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckStep(c, 0));
  const DType dtype = c.op().Has("dtype") ? c.op().Dtype("dtype") : DType::kF32;
  MSRT_RETURN_IF_ERROR(CheckType(dtype, kFloatTypes));
  c.SetOutput(0, dtype, Dims(c.op().Ints("shape")));
  return OkStatus();
}

Status InferLike(InferContext& c, DTypeSet allowed) {
  MSRT_RETURN_IF_ERROR(CheckStep(c, 1));
  MSRT_RETURN_IF_ERROR(CheckPosition(c, 2));
  Type type = c.input(0);
  if (c.op().Has("dtype")) type.dtype = c.op().Dtype("dtype");
  MSRT_RETURN_IF_ERROR(CheckType(type.dtype, allowed));
  c.SetOutput(0, type);
  return OkStatus();
}
Status InferRandomLike(InferContext& c) { return InferLike(c, kFloatTypes); }
Status InferBernoulli(InferContext& c) { return InferLike(c, kComputeTypes); }

Status InferDropout(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckStep(c, 1));
  MSRT_RETURN_IF_ERROR(CheckPosition(c, 2));
  Type mask = c.input(0);
  mask.dtype = DType::kBool;
  c.SetOutput(0, c.input(0));
  c.SetOutput(1, std::move(mask));
  return OkStatus();
}

Status InferDeriveStep(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckStep(c, 0));
  c.SetOutput(0, DType::kI64, {});
  return OkStatus();
}

Status InferMultinomial(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckStep(c, 1));
  MSRT_RETURN_IF_ERROR(CheckPosition(c, 2));
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

// The axes are those of the output, each parallel. A piece knows its position in the whole; every
// piece reads the step.
Status ResolveElements(const OpView& op, ResolvedSpace* space) {
  MSRT_RETURN_IF_ERROR(ResolveByOutput(op, space));
  space->inputs[0] = TensorMap::Same(op.output(0).dims);
  if (op.has_output(1)) space->outputs[1] = TensorMap::Same(op.output(1).dims);
  return OkStatus();
}

Status ResolveRows(const OpView& op, ResolvedSpace* space) {
  MSRT_RETURN_IF_ERROR(ResolveByOutput(op, space));
  space->inputs[0].dims[0] = DimMap::Same(0, op.output(0).dims[0]);
  return OkStatus();
}

// For a piece of a piece, positions add up and the whole stays the same. Those of the attributes
// add to that of the input "position", whose whole counts.
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

constexpr SpaceDef kShapedSpace{.localize = LocalizeRandom, .resolve = ResolveByOutput};
constexpr SpaceDef kElementSpace{.localize = LocalizeRandom, .resolve = ResolveElements};
constexpr SpaceDef kRowSpace{.localize = LocalizeRandom, .resolve = ResolveRows};

// ---- entries ------------------------------------------------------------------------------------

constexpr AttrDef kDtype{.name = "dtype", .kind = AttrKind::kDType};
constexpr AttrDef kSeed{.name = "seed", .kind = AttrKind::kFloat};
constexpr AttrDef kStream{.name = "stream", .min_int = 0};
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

constexpr AttrDef kNormalAttrs[] = {kShape, kDtype, kSeed,       kStream,
                                    kMean,  kScale, kPieceBegin, kWholeShape};
constexpr AttrDef kUniformAttrs[] = {kShape, kDtype, kSeed,       kStream,
                                     kLow,   kHigh,  kPieceBegin, kWholeShape};
constexpr AttrDef kNormalLikeAttrs[] = {kDtype, kSeed,       kStream,    kMean,
                                        kScale, kPieceBegin, kWholeShape};
constexpr AttrDef kUniformLikeAttrs[] = {kDtype, kSeed,       kStream,    kLow,
                                         kHigh,  kPieceBegin, kWholeShape};
constexpr AttrDef kBernoulliAttrs[] = {kDtype, kSeed, kStream, kPieceBegin, kWholeShape};
constexpr AttrDef kMultinomialAttrs[] = {
    {.name = "sample_size", .default_int = 1, .min_int = 0, .max_int = kMaxElements},
    kDtype,
    kSeed,
    kStream,
    kPieceBegin,
    kWholeShape};
// ONNX passes the ratio and the mode as inputs; models know both when they are converted.
constexpr AttrDef kDropoutAttrs[] = {{.name = "ratio",
                                      .kind = AttrKind::kFloat,
                                      .default_float = 0.5,
                                      .min_float = 0,
                                      .max_float = 1},
                                     {.name = "training", .min_int = 0, .max_int = 1},
                                     kSeed,
                                     kStream,
                                     kPieceBegin,
                                     kWholeShape};
constexpr AttrDef kDeriveAttrs[] = {kStream};

// Found by their names: see StepInput and PositionInput.
constexpr ParamDef kStep{"step", {DType::kI64}, ParamDef::kOptional};
constexpr ParamDef kPositionInWhole{"position", {DType::kI64}, ParamDef::kOptional};
constexpr ParamDef kShapedInputs[] = {kStep};
constexpr ParamDef kLikeInputs[] = {{"input", kComputeTypes}, kStep, kPositionInWhole};
constexpr ParamDef kFloatInputs[] = {{"input", kFloatTypes}, kStep, kPositionInWhole};
constexpr ParamDef kDeriveInputs[] = {{"step", {DType::kI64}}};

constexpr OpDef Random(std::string_view name, std::span<const AttrDef> attrs,
                       std::span<const ParamDef> inputs, InferFn infer, const SpaceDef* space) {
  return {.name = name,
          .attrs = attrs,
          .inputs = inputs,
          .infer = infer,
          .grad = GradZero,
          .space = space,
          .effect = Effect::kRandom};
}

constexpr OpDef kRandomOps[] = {
    Random("RandomNormal", kNormalAttrs, kShapedInputs, InferRandomShape, &kShapedSpace),
    Random("RandomUniform", kUniformAttrs, kShapedInputs, InferRandomShape, &kShapedSpace),
    Random("RandomNormalLike", kNormalLikeAttrs, kLikeInputs, InferRandomLike, &kElementSpace),
    Random("RandomUniformLike", kUniformLikeAttrs, kLikeInputs, InferRandomLike, &kElementSpace),
    Random("Bernoulli", kBernoulliAttrs, kFloatInputs, InferBernoulli, &kElementSpace),
    Random("Multinomial", kMultinomialAttrs, kFloatInputs, InferMultinomial, &kRowSpace),
    // With training = 1, each element is dropped (set to zero) with probability `ratio`, and those
    // that are kept are multiplied by 1 / (1 - ratio); the optional second output is true where an
    // element was kept. Otherwise the output is the input and the mask is true.
    {.name = "Dropout",
     .attrs = kDropoutAttrs,
     .inputs = kFloatInputs,
     .max_outputs = 2,
     .infer = InferDropout,
     .grad = GradDropout,
     .space = &kElementSpace,
     .effect = Effect::kRandom},
    // The step of call site `stream` in a graph whose own step is the input: a hash of both, in
    // [0, 2^62), so that iterations can count up from it.
    {.name = "DeriveStep",
     .domain = "msrt",
     .version = 1,
     .attrs = kDeriveAttrs,
     .inputs = kDeriveInputs,
     .infer = InferDeriveStep},
};

}  // namespace

std::span<const OpDef> RandomOps() { return kRandomOps; }

}  // namespace msrt
