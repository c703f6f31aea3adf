// The activation of a fused op as the node that it stands for.
#include "ops/activation.h"

#include "ops/grad_builder.h"
#include "ops/gradients.h"

namespace msrt {

ValueId AddActivation(GradBuilder& g, ValueId v) {
  const std::string_view name = g.op().String("activation");
  const double alpha = g.op().Float("activation_alpha"), beta = g.op().Float("activation_beta");
  if (name.empty()) return v;
  if (name == "GeluTanh") return g.Add("Gelu", {v}, {{"approximate", std::string("tanh")}});
  if (name == "Clip") return g.Add(name, {v}, {{"min", alpha}, {"max", beta}});
  if (name == "HardSigmoid") return g.Add(name, {v}, {{"alpha", alpha}, {"beta", beta}});
  if (name == "LeakyRelu" || name == "Elu" || name == "Swish")
    return g.Add(name, {v}, {{"alpha", alpha}});
  return g.Add(name, {v});
}

}  // namespace msrt
