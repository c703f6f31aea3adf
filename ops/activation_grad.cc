#include "ops/activation_grad.h"

namespace msrt {

ValueId Activated(GradBuilder& g, ValueId v) {
  const std::string_view name = g.op().String("activation");
  const double alpha = g.op().Float("activation_alpha"), beta = g.op().Float("activation_beta");
  if (name.empty()) return v;
  if (name == "LeakyRelu" || name == "Elu" || name == "Swish")
    return g.Add(name, {v}, {{"alpha", alpha}});
  if (name == "HardSigmoid") return g.Add(name, {v}, {{"alpha", alpha}, {"beta", beta}});
  if (name == "Clip") return g.Add(name, {v}, {{"min", alpha}, {"max", beta}});
  if (name == "GeluTanh") return g.Add("Gelu", {v}, {{"approximate", std::string("tanh")}});
  return g.Add(name, {v});
}

}  // namespace msrt
