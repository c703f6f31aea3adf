#include "core/compile/first_run.h"

namespace msrt {

Status PrepareFirstRun(const CompiledModel& model, const EntryProgram& entry,
                       const std::vector<Dims>& typical) {
  const Graph& graph = *entry.program->graph;
  BindRequest request;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Type& declared = graph.value(graph.inputs[i]).type;
    if (!declared.is_tensor() || !typical[i].known() ||
        (!declared.rank_known && typical[i].empty()))
      return OkStatus();
    request.inputs.push_back(Type::Tensor(declared.dtype, typical[i]));
  }
  for (const uint32_t slot : entry.program->state_slots)
    request.states.push_back(model.module.states[slot].initial.type());
  MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<const Binding> binding,
                        BindingFor(model, entry, request));
  return RunOnTeam(*model.parallel, [&]() -> Status {
    for (const BoundStep& step : binding->steps) {
      if (!step.kernel) continue;
      Status status = step.kernel.Prepare(*entry.program->host);
      if (!status.ok())
        return std::move(status).Within(Describe(*entry.program, entry.program->steps[step.step]));
    }
    return OkStatus();
  });
}

}  // namespace msrt
