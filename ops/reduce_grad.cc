// Gradients of reductions.
#include "ops/grad_builder.h"
#include "ops/gradients.h"
#include "ops/infer.h"

namespace msrt {
namespace {

// The value of a reduction, or its gradient, with the reduced axes as dims of 1.
ValueId WithReducedDims(GradBuilder& g, ValueId reduced) {
  if (g.op().Int("keepdims") != 0) return reduced;
  const Type x = g.type(g.input(0));
  if (!x.rank_known) {
    g.Fail(Unsupported("the rank of the input is not known; declare it"));
    return kNoValue;
  }
  const auto axes = IntsAttrOrInput(g.op(), "axes", 1);
  if (!axes) return g.Add("Unsqueeze", {reduced, g.input(1)});
  std::vector<int64_t> list = *axes;
  if (list.empty()) {
    if (g.op().Int("noop_with_empty_axes") != 0) return reduced;
    for (int d = 0; d < x.rank(); ++d) list.push_back(d);
  }
  return g.Add("Unsqueeze", {reduced}, {{"axes", std::move(list)}});
}

}  // namespace

Status GradReduceSum(GradBuilder& g) {
  g.Set(0, g.ExpandTo(WithReducedDims(g, g.grad()), g.input(0)));
  return OkStatus();
}

}  // namespace msrt
