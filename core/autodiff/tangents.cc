#include "core/autodiff/tangents.h"

#include "core/autodiff/gradients.h"
#include "ops/grad_builder.h"

namespace msrt {

Result<std::vector<ValueId>> AddTangents(Module* module, uint32_t graph,
                                         const TangentRequest& request, const OpSet* ops) {
  // The numbers of the seeds do not matter: the gradient is linear in them. They are values of
  // their own, so that nothing else depends on them.
  GradientRequest inner{request.of, {}, request.with_respect_to};
  for (ValueId v : request.of) {
    Node none;
    none.name = module->graphs[graph].value(v).name;
    GradBuilder builder(&module->graphs[graph], none, {}, {}, ops);
    inner.seeds.push_back(builder.Zeros(v));
    if (!builder.ok()) return builder.status();
  }
  MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> gradients,
                        AddGradients(module, graph, inner, ops));
  return AddGradients(module, graph, {gradients, request.tangents, inner.seeds}, ops);
}

}  // namespace msrt
