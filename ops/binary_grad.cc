// Gradients of elementwise ops with two or more inputs, which broadcast.
#include "ops/grad_builder.h"
#include "ops/gradients.h"

namespace msrt {

Status GradAdd(GradBuilder& g) {
  for (size_t i = 0; i < 2; ++i) {
    if (g.wants(i)) g.SetSummed(i, g.grad());
  }
  return OkStatus();
}

Status GradSub(GradBuilder& g) {
  if (g.wants(0)) g.SetSummed(0, g.grad());
  if (g.wants(1)) g.SetSummed(1, g.Negative(g.grad()));
  return OkStatus();
}

Status GradMul(GradBuilder& g) {
  if (g.wants(0)) g.SetSummed(0, g.Times(g.grad(), g.input(1)));
  if (g.wants(1)) g.SetSummed(1, g.Times(g.grad(), g.input(0)));
  return OkStatus();
}

Status GradDiv(GradBuilder& g) {
  const ValueId by_divisor = g.Over(g.grad(), g.input(1));
  if (g.wants(0)) g.SetSummed(0, by_divisor);
  if (g.wants(1)) g.SetSummed(1, g.Negative(g.Times(by_divisor, g.output(0))));
  return OkStatus();
}

}  // namespace msrt
