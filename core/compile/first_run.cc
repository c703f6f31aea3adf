#include "core/compile/first_run.h"

#include "core/base/platform.h"

namespace msrt {
namespace {

// The memory of a run of the whole: its arena, inputs and outputs.
double BytesOfRun(const BindRequest& request, const Binding& binding) {
  auto bytes = static_cast<double>(binding.arena_bytes);
  for (const auto* types : {&request.inputs, &binding.output_types}) {
    for (const Type& type : *types)
      if (type.concrete()) bytes += static_cast<double>(type.bytes());
  }
  return bytes;
}

}  // namespace

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
  // A run that does not fit is computed by pieces, whose kernels have other shapes.
  if (BytesOfRun(request, *binding) > static_cast<double>(PhysicalMemoryBytes())) return OkStatus();
  return RunOnTeam(*model.parallel, [&]() -> Status {
    for (const BoundStep& step : binding->steps) {
      if (step.kernel == nullptr) continue;
      Status status = step.kernel->Prepare(*entry.program->host);
      if (!status.ok())
        return std::move(status).Within(Describe(*entry.program, entry.program->steps[step.step]));
    }
    return OkStatus();
  });
}

}  // namespace msrt
