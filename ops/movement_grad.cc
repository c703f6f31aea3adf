// Gradients of ops that move elements.
#include "ops/grad_builder.h"
#include "ops/gradients.h"

namespace msrt {

// The inverse permutation. Without `perm` the dims are reversed, which is its own inverse.
Status GradTranspose(GradBuilder& g) {
  const auto perm = g.op().Ints("perm");
  if (!g.op().Has("perm")) {
    g.Set(0, g.Add("Transpose", {g.grad()}));
    return OkStatus();
  }
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  g.Set(0, g.Add("Transpose", {g.grad()}, {{"perm", std::move(inverse)}}));
  return OkStatus();
}

}  // namespace msrt
