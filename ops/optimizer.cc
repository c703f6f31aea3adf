// Optimizers of ai.onnx.preview.training: Adagrad, Adam, Momentum. Inputs: the learning rate, the
// number of updates so far, then all optimized tensors, all their gradients, and all state tensors
// of the method. Outputs: the new tensors and the new state.
#include "ops/families.h"
#include "ops/infer.h"

namespace msrt {
namespace {

constexpr std::string_view kDomain = "ai.onnx.preview.training";
constexpr size_t kFirst = 2;  // after the rate and the count

// Returns the number of lists in the inputs: tensors, gradients, and one or two of state.
size_t ListsOf(const OpView& op) { return op.op() == "Adam" ? 4 : 3; }

Status CheckScalar(const InferContext& c, size_t input, std::string_view what) {
  if (!c.input(input).concrete() || c.input(input).elements() == 1) return OkStatus();
  return InvalidModel("input ", input, ", ", what, ", has shape ", c.dims(input),
                      ", must have one element");
}

Status InferOptimizer(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckScalar(c, 0, "the rate"));
  MSRT_RETURN_IF_ERROR(CheckScalar(c, 1, "the number of updates"));
  const size_t lists = ListsOf(c.op()), given = c.op().input_count() - kFirst,
               tensors = given / lists;
  if (given % lists != 0 || tensors == 0) {
    return InvalidModel("has ", given, " tensors after the rate and the count, must have ", lists,
                        " for each that is optimized");
  }
  // Gradients are inputs only.
  if (c.output_count() != tensors * (lists - 1)) {
    return InvalidModel("has ", c.output_count(), " outputs, must have ", tensors * (lists - 1),
                        " for ", tensors, " tensors");
  }
  for (size_t t = 0; t < tensors; ++t) {
    Type type = c.input(kFirst + t);
    for (size_t list = 1; list < lists; ++list) {
      const size_t input = kFirst + list * tensors + t;
      auto merged = MergeTypes(type, c.input(input));
      if (!merged.ok())
        return InvalidModel("input ", input, " is ", c.input(input), " but belongs to a tensor ",
                            c.input(kFirst + t));
      type = *std::move(merged);
    }
    for (size_t list = 0; list + 1 < lists; ++list) c.SetOutput(list * tensors + t, type);
  }
  return OkStatus();
}

Cost CostOptimizer(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  cost.flops *= 5;
  return cost;
}

// Elements are independent; several tensors of different shapes have no common axes.
Status OptimizerAxes(const OpView& op, IterationSpace* space) {
  if (op.input_count() - kFirst != ListsOf(op))
    return Unsupported("cannot be cut: it optimizes several tensors");
  for (int64_t d : op.input(kFirst).dims) space->Add(AxisKind::kParallel, d);
  return OkStatus();
}

Status OptimizerOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    inputs[i] = i < kFirst ? Box::Whole(op.input(i).dims) : box;
  return OkStatus();
}

Status OptimizerResults(const OpView&, const Box& box, std::span<Box> outputs) {
  for (Box& output : outputs) output = box;
  return OkStatus();
}

constexpr SpaceDef kOptimizerSpace{
    .axes = OptimizerAxes, .operands = OptimizerOperands, .results = OptimizerResults};

constexpr AttrDef kNorm{.name = "norm_coefficient", .kind = AttrKind::kFloat};
constexpr AttrDef kDenominatorEpsilon{
    .name = "epsilon", .kind = AttrKind::kFloat, .default_float = 1e-6};
constexpr std::string_view kMomentumModes[] = {"standard", "nesterov"};
constexpr AttrDef kAdagradAttrs[] = {
    kNorm, kDenominatorEpsilon, {.name = "decay_factor", .kind = AttrKind::kFloat}};
constexpr AttrDef kAdamAttrs[] = {
    kNorm,
    kDenominatorEpsilon,
    {.name = "norm_coefficient_post", .kind = AttrKind::kFloat},
    {.name = "alpha", .kind = AttrKind::kFloat, .default_float = 0.9},
    {.name = "beta", .kind = AttrKind::kFloat, .default_float = 0.999},
};
constexpr AttrDef kMomentumAttrs[] = {
    {.name = "norm_coefficient", .kind = AttrKind::kFloat, .required = true},
    {.name = "alpha", .kind = AttrKind::kFloat, .required = true},
    {.name = "beta", .kind = AttrKind::kFloat, .required = true},
    {.name = "mode", .kind = AttrKind::kString, .required = true, .choices = kMomentumModes},
};
constexpr ParamDef kOptimizerInputs[] = {
    {"R", kFloatTypes}, {"T", kIndexTypes}, {"inputs", kFloatTypes, ParamDef::kVariadic}};
constexpr int kMaxUpdatedTensors = 1 << 16;

constexpr OpDef Entry(std::string_view name, std::span<const AttrDef> attrs, int min_outputs) {
  return {.name = name,
          .domain = kDomain,
          .version = 1,
          .attrs = attrs,
          .inputs = kOptimizerInputs,
          .min_outputs = min_outputs,
          .max_outputs = kMaxUpdatedTensors,
          .infer = InferOptimizer,
          .space = &kOptimizerSpace,
          .cost = CostOptimizer};
}

constexpr OpDef kOptimizerOps[] = {
    Entry("Adagrad", kAdagradAttrs, 2),
    Entry("Adam", kAdamAttrs, 3),
    Entry("Momentum", kMomentumAttrs, 2),
};

}  // namespace

std::span<const OpDef> OptimizerOps() { return kOptimizerOps; }

}  // namespace msrt
