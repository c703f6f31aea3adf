#include "core/compile.h"

#include <algorithm>

#include "core/base/clock.h"
#include "ops/validate.h"

namespace msrt {
namespace {

class Lap {
 public:
  explicit Lap(double* millis) : millis_(millis) {}
  ~Lap() { *millis_ += watch_.Millis(); }

 private:
  double* millis_;
  StopWatch watch_;
};

std::vector<Dims> TypicalDims(const Graph& graph, const CompileOptions& options) {
  std::vector<Dims> dims;
  for (ValueId v : graph.inputs) {
    const auto it =
        std::find_if(options.typical.begin(), options.typical.end(), [&](const auto& t) { return t.first == graph.value(v).name; });
    dims.push_back(it == options.typical.end() ? graph.value(v).type.dims : it->second);
  }
  return dims;
}

// Generates code for the shapes that are certain to come, so that the first run is like every other.
Status PrepareFirstRun(const CompiledModel& model, size_t entry, const std::vector<Dims>& typical) {
  const Graph& graph = *model.entries[entry].program->graph;
  BindRequest request;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Type& declared = graph.value(graph.inputs[i]).type;
    if (!declared.is_tensor() || !typical[i].known() || (!declared.rank_known && typical[i].empty())) return OkStatus();
    request.inputs.push_back(Type::Tensor(declared.dtype, typical[i]));
  }
  for (const StateSlot& s : model.module.states) request.states.push_back(s.initial.type());
  MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<const Binding> binding, BindingFor(model, entry, request));
  return RunOnTeam(*model.environment->parallel, [&]() -> Status {
    for (const BoundStep& step : binding->steps) {
      if (step.kernel != nullptr) MSRT_RETURN_IF_ERROR(step.kernel->Prepare());
    }
    return OkStatus();
  });
}

Result<std::unique_ptr<Program>> CompileEntry(CompiledModel* model, const Graph& graph, const CompileOptions& options,
                                              const std::vector<Dims>& typical) {
  const Environment& env = *model->environment;
  const StopWatch watch;
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<PlacedGraph> placed, PlacedGraph::Make(graph, *env.evaluator, typical));
  std::vector<const Delegate*> delegates;
  for (const auto& d : env.delegates) delegates.push_back(d.get());
  const double view_millis = watch.Millis();
  double place_millis = 0;
  const CompileContext context{env.allocator, env.parallel.get()};
  auto program = RunOnTeam(*env.parallel, [&] {
    return MakeProgram(graph, std::move(placed), delegates, options.place, context, env.log, &place_millis);
  });
  model->times.place += view_millis + place_millis;
  model->times.compile += watch.Millis() - view_millis - place_millis;
  return program;
}

Result<std::shared_ptr<const CompiledModel>> Compile(std::shared_ptr<CompiledModel> model, const CompileOptions& options) {
  const Environment& env = *model->environment;
  {
    Lap lap(&model->times.validate);
    MSRT_RETURN_IF_ERROR(Validate(&model->module));
  }
  {
    Lap lap(&model->times.passes);
    MSRT_ASSIGN_OR_RETURN(model->passes, RunPasses({.evaluator = env.evaluator}, options.passes, &model->module));
  }
  for (uint32_t graph_index : model->module.entries) {
    const Graph& graph = model->module.graphs[graph_index];
    const std::vector<Dims> typical = TypicalDims(graph, options);
    MSRT_ASSIGN_OR_RETURN(std::unique_ptr<Program> program, CompileEntry(model.get(), graph, options, typical));
    model->entries.push_back({std::move(program), std::make_unique<BindingCache>(options.binding_cache_bytes)});
    Lap lap(&model->times.prepare);
    MSRT_RETURN_IF_ERROR(PrepareFirstRun(*model, model->entries.size() - 1, typical));
  }
  return std::shared_ptr<const CompiledModel>(std::move(model));
}

}  // namespace

Result<std::shared_ptr<const CompiledModel>> CompileFile(std::shared_ptr<const Environment> environment, const std::string& path,
                                                         const CompileOptions& options) {
  const StopWatch watch;
  const Environment& env = *environment;
  auto bytes = options.load_by_copy ? env.io->ReadFile(path, env.allocator) : env.io->MapFile(path);
  if (!bytes.ok()) return std::move(bytes).status();
  const double map_millis = watch.Millis();
  auto model = CompileBytes(std::move(environment), *std::move(bytes), options);
  if (!model.ok()) return std::move(model).status().Within(StrCat("model '", path, "'"));
  std::const_pointer_cast<CompiledModel>(*model)->times.map = map_millis;
  return model;
}

Result<std::shared_ptr<const CompiledModel>> CompileBytes(std::shared_ptr<const Environment> environment, Bytes bytes,
                                                          const CompileOptions& options) {
  auto model = std::make_shared<CompiledModel>();
  model->environment = std::move(environment);
  {
    Lap lap(&model->times.verify);
    MSRT_ASSIGN_OR_RETURN(model->module, Load(std::move(bytes), options.limits));
  }
  return Compile(std::move(model), options);
}

Result<std::shared_ptr<const CompiledModel>> CompileModule(std::shared_ptr<const Environment> environment, Module module,
                                                           const CompileOptions& options) {
  auto model = std::make_shared<CompiledModel>();
  model->environment = std::move(environment);
  model->module = std::move(module);
  return Compile(std::move(model), options);
}

Result<std::shared_ptr<const Binding>> BindingFor(const CompiledModel& model, size_t entry, const BindRequest& request) {
  const EntryProgram& e = model.entries[entry];
  return e.bindings->Get(request, [&] { return Bind(*e.program, model.module, *model.environment->evaluator, request); });
}

}  // namespace msrt
