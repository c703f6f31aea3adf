// Gradient of Dropout.
#include "ops/grad_builder.h"
#include "ops/gradients.h"

namespace msrt {

// Which elements are dropped depends on the seed, the stream, the step and the index of an element,
// not on its value: the same node, applied to the gradient, drops the same elements and scales the
// others by the same factor. No mask has to be kept.
Status GradDropout(GradBuilder& g) {
  if (g.op().Int("training") == 0) {
    g.Set(0, g.grad());
    return OkStatus();
  }
  std::vector<ValueId> inputs{g.grad()};
  for (size_t i = 1; i < g.op().input_count(); ++i)
    inputs.push_back(g.has_input(i) ? g.input(i) : kNoValue);
  g.Set(0, g.Add("Dropout", std::move(inputs), g.op().attrs()));
  return OkStatus();
}

}  // namespace msrt
