// LRN: each element is divided by a power of the sum of squares over neighbouring channels.
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

Status InferLrn(InferContext& c) {
  const Type& x = c.input(0);
  if (x.rank_known && x.rank() < 2)
    return InvalidModel("input 0 has shape ", x.dims,
                        ", must be batch, channels and possibly space");
  return InferSameAsFirst(c);
}

Cost CostLrn(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  cost.flops *= 2 * static_cast<double>(std::min(op.Int("size"), op.input(0).dims[1])) + 10;
  return cost;
}

// The window over the channels keeps them whole; images are cut in space.
Status ResolveLrn(const OpView& op, ResolvedSpace* space) {
  ResolveByInput(
      op, [](int d) { return d == 1; }, space);
  space->outputs[0] = TensorMap::Same(op.output(0).dims);
  return OkStatus();
}

constexpr SpaceDef kLrnSpace{.resolve = ResolveLrn};
constexpr AttrDef kLrnAttrs[] = {
    {.name = "size", .required = true, .min_int = 1, .max_int = int64_t{1} << 31},
    {.name = "alpha", .kind = AttrKind::kFloat, .default_float = 1e-4},
    {.name = "beta", .kind = AttrKind::kFloat, .default_float = 0.75},
    {.name = "bias", .kind = AttrKind::kFloat, .default_float = 1},
};
constexpr ParamDef kLrnInputs[] = {{"X", kFloatTypes}};
constexpr OpDef kLocalResponseOps[] = {
    {.name = "LRN",
     .attrs = kLrnAttrs,
     .inputs = kLrnInputs,
     .infer = InferLrn,
     .grad = GradLrn,
     .space = &kLrnSpace,
     .cost = CostLrn},
};

}  // namespace

std::span<const OpDef> LocalResponseOps() { return kLocalResponseOps; }

}  // namespace msrt
