// Gradients of ops that change dims and keep the elements, and of Expand.
#include "ops/grad_builder.h"
#include "ops/gradients.h"

namespace msrt {

Status GradReshape(GradBuilder& g) {
  g.Set(0, g.ReshapeTo(g.grad(), g.input(0)));
  return OkStatus();
}

Status GradExpand(GradBuilder& g) {
  g.SetSummed(0, g.grad());
  return OkStatus();
}

}  // namespace msrt
