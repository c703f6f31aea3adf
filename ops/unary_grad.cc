// Gradients of functions of one element.
#include "ops/grad_builder.h"
#include "ops/gradients.h"

namespace msrt {

Status GradNeg(GradBuilder& g) {
  g.Set(0, g.Negative(g.grad()));
  return OkStatus();
}

Status GradReciprocal(GradBuilder& g) {
  g.Set(0, g.Negative(g.Times(g.grad(), g.Square(g.output(0)))));
  return OkStatus();
}

}  // namespace msrt
