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
Status PrepareFirstRun(const CompiledModel& model, const EntryProgram& entry, const std::vector<Dims>& typical) {
  const Graph& graph = *entry.program->graph;
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
      if (step.kernel) MSRT_RETURN_IF_ERROR(step.kernel.Prepare(*entry.program->host));
    }
    return OkStatus();
  });
}

Result<std::shared_ptr<EntryProgram>> PlaceEntry(const CompiledModel& model, const Graph& graph, const std::vector<Dims>& typical,
                                                 const PlaceOptions& options, LoadTimes* times) {
  const Environment& env = *model.environment;
  const StopWatch watch;
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<PlacedGraph> placed, PlacedGraph::Make(graph, *env.evaluator, typical));
  const double view_millis = watch.Millis();
  double place_millis = 0;
  // Estimates stand beside measured costs, so they are made for the machine that those were measured on.
  const std::optional<Machine> machine = options.costs != nullptr ? options.costs->origin.machine : env.machine;
  auto host = std::make_shared<const Host>(env.allocator, env.parallel, env.log, machine);
  auto program = RunOnTeam(*env.parallel,
                           [&] { return MakeProgram(std::move(placed), std::move(host), env.delegates, options, env.log, &place_millis); });
  if (!program.ok()) return std::move(program).status();
  times->place += view_millis + place_millis;
  times->compile += watch.Millis() - view_millis - place_millis;
  auto entry = std::make_shared<EntryProgram>();
  entry->program = *std::move(program);
  entry->bindings = std::make_unique<BindingCache>(model.options.binding_cache_bytes);
  return entry;
}

Result<std::shared_ptr<const EntryProgram>> CompileEntry(const CompiledModel& model, const Graph& graph, PlaceOptions options,
                                                         LoadTimes* times) {
  const std::vector<Dims> typical = TypicalDims(graph, model.options);
  for (;;) {
    MSRT_ASSIGN_OR_RETURN(std::shared_ptr<const EntryProgram> entry, PlaceEntry(model, graph, typical, options, times));
    Lap lap(&times->prepare);
    Status status = PrepareFirstRun(model, *entry, typical);
    if (status.ok()) return entry;
    const std::string failed = FailedDelegate(status);
    if (failed.empty() || options.strict) return status;
    model.environment->log(LogLevel::kWarning, "delegate ", failed, " failed to bind (", status.message(), "); placing again without it");
    options.pins.push_back({"", "", failed, /*exclude=*/true});
  }
}

// A pin that speaks of no node is a slip of the pen, or names what a pass has merged into another node.
void WarnOfIdlePins(const CompiledModel& model) {
  for (const Pin& pin : model.options.place.pins) {
    const bool used = std::any_of(model.module.entries.begin(), model.module.entries.end(), [&](uint32_t entry) {
      const std::vector<Node>& nodes = model.module.graphs[entry].nodes;
      return std::any_of(nodes.begin(), nodes.end(), [&](const Node& node) { return Concerns(pin, node); });
    });
    if (!used) model.environment->log(LogLevel::kWarning, "pin '", Describe(pin), "' matches no node as they are after all passes");
  }
}

Result<std::shared_ptr<const CompiledModel>> Compile(std::shared_ptr<CompiledModel> model, const CompileOptions& options) {
  const Environment& env = *model->environment;
  model->options = options;
  {
    Lap lap(&model->times.validate);
    MSRT_RETURN_IF_ERROR(Validate(&model->module, env.ops.get()));
  }
  {
    Lap lap(&model->times.passes);
    MSRT_ASSIGN_OR_RETURN(model->passes, RunPasses({.evaluator = env.evaluator, .ops = env.ops.get()}, options.passes, &model->module));
  }
  WarnOfIdlePins(*model);
  for (uint32_t graph_index : model->module.entries) {
    MSRT_ASSIGN_OR_RETURN(std::shared_ptr<const EntryProgram> entry,
                          CompileEntry(*model, model->module.graphs[graph_index], options.place, &model->times));
    model->entries.push_back(std::make_unique<ModelEntry>(std::move(entry)));
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

Result<std::shared_ptr<const Binding>> BindingFor(const CompiledModel& model, const EntryProgram& entry, const BindRequest& request) {
  return entry.bindings->Get(request, [&] { return Bind(*entry.program, model.module, *model.environment->evaluator, request); });
}

Status PlaceWithout(const CompiledModel& model, size_t index, const std::shared_ptr<const EntryProgram>& failed,
                    const std::string& delegate, const Status& why) {
  if (model.options.place.strict) return why;
  const Environment& env = *model.environment;
  ModelEntry& entry = *model.entries[index];
  std::lock_guard replacing(entry.replacing_);
  if (entry.current() != failed) return OkStatus();
  env.log(LogLevel::kWarning, "delegate ", delegate, " failed at run time (", why.message(), "); placing the model again without it");
  PlaceOptions options = model.options.place;
  for (const std::string& lost : entry.lost_) options.pins.push_back({"", "", lost, /*exclude=*/true});
  options.pins.push_back({"", "", delegate, /*exclude=*/true});
  LoadTimes times;
  auto program = CompileEntry(model, *failed->program->graph, options, &times);
  if (!program.ok()) {
    return MakeStatus(why.code(), why.message(), "; without delegate ", delegate, " the model cannot run: ", program.status().message());
  }
  // Only now: a delegate that nobody can replace is tried again by the next run.
  entry.lost_.push_back(delegate);
  std::lock_guard lock(entry.mutex_);
  entry.current_ = *std::move(program);
  return OkStatus();
}

}  // namespace msrt
