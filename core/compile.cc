#include "core/compile.h"

#include <algorithm>
#include <deque>

#include "core/base/clock.h"
#include "ops/control.h"
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
  entry->program->reads_state_in_place = model.module.graphs.size() == 1;
  entry->typical = typical;
  entry->bindings = std::make_unique<BindingCache>(model.options.binding_cache_bytes);
  return entry;
}

bool IsEntry(const Module& module, const Graph& graph) {
  return std::any_of(module.entries.begin(), module.entries.end(), [&](uint32_t entry) { return &module.graphs[entry] == &graph; });
}

Result<std::shared_ptr<const EntryProgram>> CompileGraph(const CompiledModel& model, const Graph& graph, const std::vector<Dims>& typical,
                                                         PlaceOptions options, LoadTimes* times) {
  for (;;) {
    MSRT_ASSIGN_OR_RETURN(std::shared_ptr<const EntryProgram> entry, PlaceEntry(model, graph, typical, options, times));
    Lap lap(&times->prepare);
    Status status = PrepareFirstRun(model, *entry, typical);
    if (status.ok()) return entry;
    const std::string failed = FailedDelegate(status);
    // What a graph is called with is a guess until it is called, and a branch may never be.
    if (failed.empty() && !IsEntry(model.module, graph)) return entry;
    if (failed.empty() || options.strict) return status;
    model.environment->log(LogLevel::kWarning, "delegate ", failed, " failed to bind (", status.message(), "); placing again without it");
    options.pins.push_back({"", "", failed, /*exclude=*/true});
  }
}

// A pin that speaks of no node is a slip of the pen, or names what a pass has merged into another node.
void WarnOfIdlePins(const CompiledModel& model) {
  for (const Pin& pin : model.options.place.pins) {
    const bool used = std::any_of(model.module.graphs.begin(), model.module.graphs.end(), [&](const Graph& graph) {
      return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) { return Concerns(pin, node); });
    });
    if (!used) model.environment->log(LogLevel::kWarning, "pin '", Describe(pin), "' matches no node as they are after all passes");
  }
}

// What the graphs that a node calls get at typical shapes, where that is known.
void AddCallees(const Module& module, const PlacedGraph& placed, const Node& node,
                std::deque<std::pair<uint32_t, std::vector<Dims>>>* queue) {
  const auto calls = CallsOf(node, [&](ValueId v) { return placed.typical().types[IndexOf(v)]; });
  if (!calls.ok()) return;  // typical shapes are guesses: a loop over one may not even slice
  for (const GraphCall& call : *calls) {
    const Graph& callee = module.graphs[call.graph];
    std::vector<Dims> dims;
    for (size_t i = 0; i < callee.inputs.size(); ++i) {
      const Type& declared = callee.value(callee.inputs[i]).type;
      const bool fits = i < call.arguments.size() && call.arguments[i].concrete() && MergeTypes(declared, call.arguments[i]).ok();
      dims.push_back(fits ? call.arguments[i].dims : declared.dims);
    }
    queue->emplace_back(call.graph, std::move(dims));
  }
}

// Every graph that a run can reach. Those that are called are placed for what their first caller hands to them.
Status CompileGraphs(CompiledModel* model) {
  model->graphs.resize(model->module.graphs.size());
  std::deque<std::pair<uint32_t, std::vector<Dims>>> queue;
  for (uint32_t entry : model->module.entries) queue.emplace_back(entry, TypicalDims(model->module.graphs[entry], model->options));
  while (!queue.empty()) {
    const auto [g, typical] = std::move(queue.front());
    queue.pop_front();
    if (model->graphs[g] != nullptr) continue;
    const Graph& graph = model->module.graphs[g];
    auto compiled = CompileGraph(*model, graph, typical, model->options.place, &model->times);
    if (!compiled.ok() && model->graphs.size() > 1) return std::move(compiled).status().Within(StrCat("graph ", g, " '", graph.name, "'"));
    if (!compiled.ok()) return std::move(compiled).status();
    model->graphs[g] = std::make_shared<ModelEntry>(*compiled);
    for (const Node& node : graph.nodes) {
      if (IsControl(node)) AddCallees(model->module, *(*compiled)->program->placed, node, &queue);
    }
  }
  for (uint32_t entry : model->module.entries) model->entries.push_back(model->graphs[entry]);
  return OkStatus();
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
    MSRT_ASSIGN_OR_RETURN(model->passes, RunPasses({.evaluator = env.evaluator, .ops = env.ops.get(), .added = env.passes}, options.passes, &model->module));
  }
  WarnOfIdlePins(*model);
  MSRT_RETURN_IF_ERROR(CompileGraphs(model.get()));
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

Status PlaceWithout(const CompiledModel& model, uint32_t graph, const std::shared_ptr<const EntryProgram>& failed,
                    const std::string& delegate, const Status& why) {
  if (model.options.place.strict) return why;
  const Environment& env = *model.environment;
  ModelEntry& entry = *model.graphs[graph];
  std::lock_guard replacing(entry.replacing_);
  if (entry.current() != failed) return OkStatus();
  env.log(LogLevel::kWarning, "delegate ", delegate, " failed at run time (", why.message(), "); placing the model again without it");
  PlaceOptions options = model.options.place;
  for (const std::string& lost : entry.lost_) options.pins.push_back({"", "", lost, /*exclude=*/true});
  options.pins.push_back({"", "", delegate, /*exclude=*/true});
  LoadTimes times;
  auto program = CompileGraph(model, *failed->program->graph, failed->typical, options, &times);
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
