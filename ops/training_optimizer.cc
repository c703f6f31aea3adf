// Optimizers of domain msrt, with the formulas of PyTorch; each is one node over all parameters of
// a model. Inputs: the learning rate; the number of updates so far; a factor of the gradients
// (optional: 1 over the loss scale, a limit of their norm); whether to skip the update (optional);
// then all parameters, all their gradients, and the state lists of the method. Outputs: the new
// parameters and the new state. Parameters may differ in their rate, weight decay and adaptation,
// which are attributes with one element for each, so that groups need no nodes of their own.
//
// GlobalNorm is the norm of all gradients together, MovingAverage that of parameters over updates.
// None of them is differentiable.
#include "ops/families.h"
#include "ops/infer.h"

namespace msrt {
namespace {

constexpr size_t kLead = 4;  // rate, updates, factor, skip
constexpr int kMaxUpdated = 1 << 16;

// Returns the number of lists in the inputs: parameters, gradients and state.
size_t UpdateLists(const OpView& op) {
  const std::string_view name = op.op();
  if (name == "Sgd") return 2;
  if (name == "Momentum" || name == "Adagrad" || name == "Lars") return 3;
  if (name != "RmsProp") return 4;
  return size_t{3} + (op.Int("centered") != 0) + (op.Float("momentum") != 0);
}

Status CheckOneElement(const InferContext& c, size_t input, std::string_view what) {
  if (!c.has_input(input) || !c.input(input).concrete() || c.input(input).elements() == 1)
    return OkStatus();
  return InvalidModel("input ", input, ", ", what, ", has shape ", c.dims(input),
                      ", must have one element");
}

Status CheckPerTensor(std::string_view attr, size_t given, size_t tensors) {
  if (given == 0 || given == 1 || given == tensors) return OkStatus();
  return InvalidModel(attr, " has ", given, " elements, must have 1 or one for each of ", tensors,
                      " parameters");
}

// Checks that the lists from input `first` on have equal types, up to the element type of
// gradients, and sets the outputs to all of them but the gradients.
Status InferLists(InferContext& c, size_t first, size_t lists, size_t gradients) {
  const size_t given = c.op().input_count() - first, tensors = given / lists;
  if (given % lists != 0 || tensors == 0) {
    return InvalidModel("has ", given, " tensors from input ", first, " on, must have ", lists,
                        " for each parameter");
  }
  if (c.output_count() != tensors * (lists - 1)) {
    return InvalidModel("has ", c.output_count(), " outputs, must have ", tensors * (lists - 1),
                        " for ", tensors, " parameters");
  }
  for (size_t t = 0; t < tensors; ++t) {
    Type type = c.input(first + t);
    for (size_t list = 1; list < lists; ++list) {
      const size_t input = first + list * tensors + t;
      Type other = c.input(input);
      if (list == gradients) other.dtype = type.dtype;
      auto merged = MergeTypes(type, other);
      if (!merged.ok()) {
        return InvalidModel("input ", input, " is ", c.input(input),
                            " but belongs to a parameter ", c.input(first + t));
      }
      type = *std::move(merged);
    }
    for (size_t list = 0, output = 0; list < lists; ++list) {
      if (list != gradients) c.SetOutput(output++ * tensors + t, type);
    }
  }
  return OkStatus();
}

Status InferUpdate(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckOneElement(c, 0, "the rate"));
  MSRT_RETURN_IF_ERROR(CheckOneElement(c, 1, "the number of updates"));
  MSRT_RETURN_IF_ERROR(CheckOneElement(c, 2, "the factor of gradients"));
  MSRT_RETURN_IF_ERROR(CheckOneElement(c, 3, "the skip"));
  const size_t lists = UpdateLists(c.op());
  MSRT_RETURN_IF_ERROR(InferLists(c, kLead, lists, /*gradients=*/1));
  const size_t tensors = (c.op().input_count() - kLead) / lists;
  MSRT_RETURN_IF_ERROR(
      CheckPerTensor("weight_decay", c.op().Floats("weight_decay").size(), tensors));
  MSRT_RETURN_IF_ERROR(
      CheckPerTensor("rate_factor", c.op().Floats("rate_factor").size(), tensors));
  return CheckPerTensor("adapted", c.op().Ints("adapted").size(), tensors);
}

Status InferGlobalNorm(InferContext& c) {
  c.SetOutput(0, DType::kF64, {});
  return OkStatus();
}

Status InferMovingAverage(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckOneElement(c, 0, "the skip"));
  return InferLists(c, 1, 2, /*gradients=*/1);
}

Cost CostOfUpdate(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  cost.flops *= 5;
  return cost;
}

Cost CostOfNorm(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  for (size_t i = 0; i < op.input_count(); ++i)
    cost.flops += 2 * static_cast<double>(op.input(i).elements());
  return cost;
}

// Elements are independent; several tensors of different shapes have no common axes.
Status UpdateAxes(const OpView& op, IterationSpace* space) {
  if (op.input_count() - kLead != UpdateLists(op))
    return Unsupported("cannot be cut: it updates several parameters");
  for (int64_t d : op.input(kLead).dims) space->Add(AxisKind::kParallel, d);
  return OkStatus();
}

Status UpdateOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!op.has_input(i)) continue;
    inputs[i] = i < kLead ? Box::Whole(op.input(i).dims) : box;
  }
  return OkStatus();
}

Status UpdateResults(const OpView&, const Box& box, std::span<Box> outputs) {
  for (Box& output : outputs) output = box;
  return OkStatus();
}

constexpr SpaceDef kUpdateSpace{
    .axes = UpdateAxes, .operands = UpdateOperands, .results = UpdateResults};

constexpr AttrDef kDecay{.name = "weight_decay",
                         .kind = AttrKind::kFloats,
                         .min_float = 0,
                         .max_count = kMaxUpdated};
constexpr AttrDef kRateFactor{.name = "rate_factor",
                              .kind = AttrKind::kFloats,
                              .min_float = 0,
                              .max_count = kMaxUpdated};
// Lamb and Lars: whether the rate of a parameter follows its norm; absent: of all.
constexpr AttrDef kAdapted{.name = "adapted",
                           .kind = AttrKind::kInts,
                           .min_int = 0,
                           .max_int = 1,
                           .max_count = kMaxUpdated};
// Gradients are limited to [-clip, clip] after their factor; 0: not limited.
constexpr AttrDef kClip{.name = "clip", .kind = AttrKind::kFloat, .min_float = 0};
constexpr AttrDef kMomentumFactor{
    .name = "momentum", .kind = AttrKind::kFloat, .min_float = 0, .max_float = 1};

constexpr AttrDef Part(std::string_view name, double usual) {
  return {.name = name,
          .kind = AttrKind::kFloat,
          .default_float = usual,
          .min_float = 0,
          .max_float = 1};
}
constexpr AttrDef Epsilon(double usual) {
  return {.name = "epsilon", .kind = AttrKind::kFloat, .default_float = usual, .min_float = 0};
}

constexpr AttrDef kSgdAttrs[] = {kDecay, kRateFactor, kClip};
constexpr AttrDef kMomentumAttrs[] = {
    kDecay,          kRateFactor,           kClip,
    kMomentumFactor, Part("dampening", 0),  {.name = "nesterov", .min_int = 0, .max_int = 1}};
constexpr AttrDef kRmsPropAttrs[] = {kDecay,
                                     kRateFactor,
                                     kClip,
                                     kMomentumFactor,
                                     Part("alpha", 0.99),
                                     Epsilon(1e-8),
                                     {.name = "centered", .min_int = 0, .max_int = 1}};
constexpr AttrDef kAdagradAttrs[] = {
    kDecay,
    kRateFactor,
    kClip,
    Epsilon(1e-10),
    {.name = "rate_decay", .kind = AttrKind::kFloat, .min_float = 0}};
constexpr AttrDef kAdamAttrs[] = {
    kDecay, kRateFactor, kClip, Part("beta1", 0.9), Part("beta2", 0.999), Epsilon(1e-8)};
constexpr AttrDef kLambAttrs[] = {
    kDecay, kRateFactor, kClip, Part("beta1", 0.9), Part("beta2", 0.999), Epsilon(1e-6), kAdapted};
constexpr AttrDef kLarsAttrs[] = {
    kDecay,
    kRateFactor,
    kClip,
    kMomentumFactor,
    {.name = "trust", .kind = AttrKind::kFloat, .default_float = 0.001, .min_float = 0},
    Epsilon(1e-8),
    kAdapted};
constexpr AttrDef kAverageAttrs[] = {{.name = "decay",
                                      .kind = AttrKind::kFloat,
                                      .required = true,
                                      .min_float = 0,
                                      .max_float = 1}};

constexpr ParamDef kUpdateInputs[] = {{"rate", kFloatTypes},
                                      {"updates", kIndexTypes},
                                      {"factor", kFloatTypes, ParamDef::kOptional},
                                      {"skip", DTypeSet{DType::kBool}, ParamDef::kOptional},
                                      {"tensors", kFloatTypes, ParamDef::kVariadic}};
constexpr ParamDef kNormInputs[] = {{"gradients", kFloatTypes, ParamDef::kVariadic}};
constexpr ParamDef kAverageInputs[] = {{"skip", DTypeSet{DType::kBool}, ParamDef::kOptional},
                                       {"tensors", kFloatTypes, ParamDef::kVariadic}};

constexpr OpDef Update(std::string_view name, std::span<const AttrDef> attrs,
                       const SpaceDef* space = &kUpdateSpace) {
  return {.name = name,
          .domain = "msrt",
          .version = 1,
          .attrs = attrs,
          .inputs = kUpdateInputs,
          .max_outputs = kMaxUpdated,
          .infer = InferUpdate,
          .space = space,
          .cost = CostOfUpdate};
}

constexpr OpDef kTrainingOptimizerOps[] = {
    Update("Sgd", kSgdAttrs),
    Update("Momentum", kMomentumAttrs),
    Update("RmsProp", kRmsPropAttrs),
    Update("Adagrad", kAdagradAttrs),
    Update("Adam", kAdamAttrs),
    Update("AdamW", kAdamAttrs),
    // The norm of a parameter needs all of it.
    Update("Lamb", kLambAttrs, nullptr),
    Update("Lars", kLarsAttrs, nullptr),
    {.name = "GlobalNorm",
     .domain = "msrt",
     .version = 1,
     .inputs = kNormInputs,
     .infer = InferGlobalNorm,
     .cost = CostOfNorm},
    {.name = "MovingAverage",
     .domain = "msrt",
     .version = 1,
     .attrs = kAverageAttrs,
     .inputs = kAverageInputs,
     .max_outputs = kMaxUpdated,
     .infer = InferMovingAverage,
     .cost = CostOfUpdate},
};

}  // namespace

std::span<const OpDef> TrainingOptimizerOps() { return kTrainingOptimizerOps; }

}  // namespace msrt
