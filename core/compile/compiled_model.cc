#include "core/compile/compiled_model.h"

namespace msrt {

ModelExtras NativeExtras(const CompiledModel& model) {
  ModelExtras extras;
  if (model.forms != nullptr) extras.packed = model.forms->KeptForms(model.module);
  return extras;
}

Result<std::shared_ptr<const Binding>> BindingFor(const CompiledModel& model,
                                                  const EntryProgram& entry,
                                                  const BindRequest& request) {
  return entry.bindings->Get(request, [&] {
    return Bind(*entry.program, model.module, *model.environment->evaluator, request);
  });
}

std::vector<std::shared_ptr<const EntryProgram>> ProgramsOf(const CompiledModel& model) {
  std::vector<std::shared_ptr<const EntryProgram>> programs;
  for (const auto& graph : model.graphs)
    programs.push_back(graph == nullptr ? nullptr : graph->current());
  return programs;
}

}  // namespace msrt
