#include "core/compile.h"

#include <algorithm>
#include <deque>

#include "core/base/clock.h"
#include "core/estimate.h"
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
  return RunOnTeam(*model.parallel, [&]() -> Status {
    for (const BoundStep& step : binding->steps) {
      if (!step.kernel) continue;
      Status status = step.kernel.Prepare(*entry.program->host);
      if (!status.ok()) return std::move(status).Within(Describe(*entry.program, entry.program->steps[step.step]));
    }
    return OkStatus();
  });
}

// The scale of estimates: of the machine that measured costs beside them come from, else of this one, as much of it as runs use.
std::optional<Machine> ScaleOf(const CompiledModel& model, const PlaceOptions& options) {
  if (options.costs != nullptr) return options.costs->origin.machine;
  const std::optional<Machine>& machine = model.environment->machine;
  if (!machine) return machine;
  const double part = static_cast<double>(model.parallel->threads()) / model.environment->parallel->threads();
  return Machine{machine->flops_per_second * part, machine->bytes_per_second * part};
}

Result<std::shared_ptr<EntryProgram>> PlaceEntry(const CompiledModel& model, uint32_t graph, const PlaceOptions& options,
                                                 LoadTimes* times) {
  const Environment& env = *model.environment;
  const StopWatch watch;
  double place_millis = 0;
  auto host = std::make_shared<const Host>(env.allocator, model.parallel, env.log, ScaleOf(model, options), model.forms,
                                           MappedConstants{env.io, model.mapped});
  auto program = RunOnTeam(
      *model.parallel, [&] { return MakeProgram(model.views[graph], std::move(host), env.delegates, options, env.log, &place_millis); });
  if (!program.ok()) return std::move(program).status();
  times->place += place_millis;
  times->compile += watch.Millis() - place_millis;
  auto entry = std::make_shared<EntryProgram>();
  entry->program = *std::move(program);
  entry->program->reads_state_in_place = model.module.graphs.size() == 1;
  entry->bindings = std::make_unique<BindingCache>(model.options.binding_cache_bytes);
  return entry;
}

bool IsEntry(const Module& module, const Graph& graph) {
  return std::any_of(module.entries.begin(), module.entries.end(), [&](uint32_t entry) { return &module.graphs[entry] == &graph; });
}

// A graph that a run can reach, and the dims of its inputs to place it for.
struct Reached {
  uint32_t graph;
  std::vector<Dims> typical;
  std::unique_ptr<PlacedGraph> placed;
};

Result<std::shared_ptr<const EntryProgram>> CompileGraph(const CompiledModel& model, uint32_t number, const std::vector<Dims>& typical,
                                                         PlaceOptions options, LoadTimes* times) {
  const Graph& graph = model.module.graphs[number];
  for (;;) {
    MSRT_ASSIGN_OR_RETURN(std::shared_ptr<const EntryProgram> entry, PlaceEntry(model, number, options, times));
    Lap lap(&times->prepare);
    Status status = PrepareFirstRun(model, *entry, typical);
    if (status.ok()) return entry;
    const std::string failed = FailedDelegate(status);
    // What a graph is called with is a guess until it is called, and a branch may never be.
    if (failed.empty() && !IsEntry(model.module, graph)) return entry;
    if (failed.empty() || options.strict) return status;
    model.environment->log(LogLevel::kWarning, "delegate ", failed, " failed to bind (", status.message(), "); placing again without it");
    options.lost.push_back({failed, StrCat("it failed to bind (", status.message(), ")")});
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
void AddCallees(const Module& module, const PlacedGraph& placed, const Node& node, std::deque<Reached>* queue) {
  std::vector<GraphCall> calls;
  if (auto typical = CallsOf(node, [&](ValueId v) { return placed.typical().types[IndexOf(v)]; }); typical.ok()) {
    calls = *std::move(typical);
  } else {  // typical shapes are guesses: a loop over one may not even slice
    for (const uint32_t graph : ShapeOfControl(node).graphs) calls.push_back({graph, "", {}});
  }
  for (const GraphCall& call : calls) {
    const Graph& callee = module.graphs[call.graph];
    std::vector<Dims> dims;
    for (size_t i = 0; i < callee.inputs.size(); ++i) {
      const Type& declared = callee.value(callee.inputs[i]).type;
      const bool fits = i < call.arguments.size() && call.arguments[i].concrete() && MergeTypes(declared, call.arguments[i]).ok();
      dims.push_back(fits ? call.arguments[i].dims : declared.dims);
    }
    queue->push_back({call.graph, std::move(dims), nullptr});
  }
}

// What a team saves of a run of the graph at typical shapes, give or take a factor of two, apart from waking it: less than nothing if
// handing the steps' work to several threads costs more than sharing it gains.
double SecondsSaved(const PlacedGraph& graph, int threads) {
  constexpr double kEfficiency = 0.4;        // of small products and of loops
  constexpr double kHandOverSeconds = 4e-6;  // of one step, there and back
  const Machine core = TypicalMachine(1);
  double seconds = 0;
  for (size_t n = 0; n < graph.node_count(); ++n) {
    const msrt_node_view& node = graph.node(n);
    const double alone = std::max(node.flops / (kEfficiency * core.flops_per_second), node.bytes / core.bytes_per_second);
    seconds += alone * (1 - 1.0 / threads) - kHandOverSeconds;
  }
  return seconds;
}

// Of one graph among several.
Status NamingGraph(Status status, const Module& module, uint32_t graph) {
  if (module.graphs.size() == 1) return status;
  return std::move(status).Within(StrCat("graph ", graph, " '", module.graphs[graph].name, "'"));
}

// Every graph that a run can reach. Those that are called are placed for what their first caller hands to them. `most_saved` gets what a
// team saves in the one that gains most.
Result<std::vector<Reached>> FindReached(const CompiledModel& model, double* millis, double* most_saved) {
  Lap lap(millis);
  const Module& module = model.module;
  std::vector<Reached> reached;
  std::vector<bool> seen(module.graphs.size());
  std::deque<Reached> queue;
  for (uint32_t entry : module.entries) queue.push_back({entry, TypicalDims(module.graphs[entry], model.options), nullptr});
  for (; !queue.empty(); queue.pop_front()) {
    Reached& next = queue.front();
    if (seen[next.graph]) continue;
    seen[next.graph] = true;
    auto placed = PlacedGraph::Make(module.graphs[next.graph], *model.environment->evaluator, next.typical, &module);
    if (!placed.ok()) return NamingGraph(std::move(placed).status(), module, next.graph);
    next.placed = *std::move(placed);
    *most_saved = std::max(*most_saved, SecondsSaved(*next.placed, model.environment->parallel->threads()));
    reached.push_back(std::move(next));
    for (const Node& node : module.graphs[reached.back().graph].nodes) {
      if (IsControl(node)) AddCallees(module, *reached.back().placed, node, &queue);
    }
  }
  return reached;
}

// Whether it is certain how large a run of any entry will be.
bool InputsAreKnown(const CompiledModel& model) {
  return std::all_of(model.module.entries.begin(), model.module.entries.end(), [&](uint32_t entry) {
    const std::vector<Dims> typical = TypicalDims(model.module.graphs[entry], model.options);
    return std::all_of(typical.begin(), typical.end(), [](const Dims& dims) { return dims.known(); });
  });
}

}  // namespace

// Gives programs to the graphs that it is told of, and to whatever these call that has none.
class GraphCompiler {
 public:
  GraphCompiler(const CompiledModel& model, const PlaceOptions& options, LoadTimes* times)
      : model_(model), options_(options), times_(*times), seen_(model.graphs.size()) {}

  // What a delegate takes along with a node needs no program: graphs that nobody else calls are not even placed.
  Status Compile(uint32_t graph) {
    std::deque<uint32_t> queue{graph};
    for (; !queue.empty(); queue.pop_front()) {
      const uint32_t next = queue.front();
      std::shared_ptr<const EntryProgram> before = model_.graphs[next]->current();
      if ((next != graph && before != nullptr) || seen_[next]) continue;
      seen_[next] = true;
      auto program = CompileGraph(model_, next, model_.graphs[next]->typical_, options_, &times_);
      if (!program.ok()) return NamingGraph(std::move(program).status(), model_.module, next);
      for (const Step& step : (*program)->program->steps) {
        if (step.control != nullptr) queue.insert(queue.end(), step.control->graphs.begin(), step.control->graphs.end());
      }
      made_.push_back({next, *std::move(program), std::move(before)});
    }
    return OkStatus();
  }

  // From now on runs use them. Callees come first: a run may go there at once; one that two callers needed at once may have a program
  // already. What was there before goes with this object and not under a lock, since the end of a program calls delegates.
  void Install() {
    for (auto made = made_.rbegin(); made != made_.rend(); ++made) {
      ModelEntry& entry = *model_.graphs[made->graph];
      std::lock_guard lock(entry.mutex_);
      if (entry.current_ != made->before) continue;
      entry.lost_ = options_.lost;
      entry.current_.swap(made->program);
    }
  }

  // The graph, and what it calls from now on, without the delegate and those that the graph lost before. False: another session has put a
  // program in the place of `failed` meanwhile.
  static Result<bool> PlaceAgain(const CompiledModel& model, uint32_t graph, const std::shared_ptr<const EntryProgram>& failed,
                                 LostDelegate without) {
    const ModelEntry& entry = *model.graphs[graph];
    PlaceOptions options = model.options.place;
    {
      std::lock_guard replacing(model.replacing);
      options.lost = entry.lost_;
    }
    options.lost.push_back(std::move(without));
    LoadTimes times;
    GraphCompiler compiler(model, options, &times);
    Status status = entry.current() == failed ? compiler.Compile(graph) : OkStatus();
    std::lock_guard replacing(model.replacing);
    if (entry.current() != failed) return false;
    // Only now is it lost: a delegate that nobody can replace is tried again by the next run.
    if (!status.ok()) return status;
    compiler.Install();
    return true;
  }

  // By number: all that a run can reach.
  static void AddEntries(std::vector<Reached> reached, CompiledModel* model) {
    const std::vector<std::vector<CarriedPair>> carried = FindCarried(model->module);
    model->views.resize(model->module.graphs.size());
    model->graphs.resize(model->module.graphs.size());
    for (Reached& r : reached) {
      r.placed->SetCarried(carried[r.graph]);
      r.placed->SetModule(&model->views);
      model->views[r.graph] = std::move(r.placed);
      model->graphs[r.graph] = std::make_shared<ModelEntry>();
      model->graphs[r.graph]->typical_ = std::move(r.typical);
    }
    for (uint32_t entry : model->module.entries) model->entries.push_back(model->graphs[entry]);
  }

 private:
  struct Made {
    uint32_t graph;
    std::shared_ptr<const EntryProgram> program;
    std::shared_ptr<const EntryProgram> before;  // whose place it takes; null: it is the first
  };
  const CompiledModel& model_;
  const PlaceOptions& options_;
  LoadTimes& times_;
  std::vector<bool> seen_;  // by graph
  std::vector<Made> made_;
};

namespace {

Status CompileGraphs(CompiledModel* model) {
  const Environment& env = *model->environment;
  double most_saved = 0;
  MSRT_ASSIGN_OR_RETURN(std::vector<Reached> reached, FindReached(*model, &model->times.place, &most_saved));
  const bool alone = env.parallel->threads() > 1 && most_saved <= env.team_seconds && InputsAreKnown(*model);
  model->parallel = alone ? std::shared_ptr<ParallelFor>(MakeSerial()) : env.parallel;
  GraphCompiler::AddEntries(std::move(reached), model);
  GraphCompiler compiler(*model, model->options.place, &model->times);
  for (uint32_t entry : model->module.entries) MSRT_RETURN_IF_ERROR(compiler.Compile(entry));
  compiler.Install();
  return OkStatus();
}

// Whether more nodes make tensors in bf16 than in any other float type. Weights alone do not count: they may only be stored so.
bool ComputesInBf16(const Module& module) {
  int64_t bf16 = 0, others = 0;
  for (const Graph& graph : module.graphs) {
    for (const Node& node : graph.nodes) {
      for (ValueId v : node.outputs) {
        const DType dtype = v == kNoValue ? DType::kNone : graph.value(v).type.dtype;
        if (dtype == DType::kBF16) ++bf16;
        else if (IsFloat(dtype)) ++others;
      }
    }
  }
  return bf16 > others;
}

// The application allows rounding, and nothing comes of it.
void WarnAboutUnusedReduction(const CompiledModel& model) {
  for (const auto& entry : ProgramsOf(model)) {
    if (entry == nullptr) continue;
    const std::vector<NodeExplanation>& nodes = entry->program->explanations;
    if (std::any_of(nodes.begin(), nodes.end(), [](const NodeExplanation& e) { return e.reduced; })) return;
  }
  model.environment->log(LogLevel::kWarning, "accuracy 'fast' has no effect: nothing here computes this model faster with fewer bits");
}

// Whether a delegate that the model may use says so, or an application registered a kernel for just this type.
bool ComputesNatively(const Environment& env, const PlaceOptions& options, const Node& node, DType dtype) {
  const std::vector<std::string>& allowed = options.delegates;
  const auto may_use = [&](std::string_view name) {
    return allowed.empty() || std::find(allowed.begin(), allowed.end(), name) != allowed.end();
  };
  const auto has_type = [](const RegisteredKernel& k, DType type) { return (k.desc.types >> static_cast<int>(type) & 1) != 0; };
  return std::any_of(env.delegates.begin(), env.delegates.end(),
                     [&](const auto& d) { return d->ComputesNatively(dtype) && may_use(d->name()); }) ||
         std::any_of(env.kernels.begin(), env.kernels.end(), [&](const RegisteredKernel& k) {
           return k.op == node.op && k.domain == node.domain && has_type(k, dtype) && !has_type(k, DType::kF32);
         });
}

Result<std::vector<PassReport>> RunPassesOn(CompiledModel* model) {
  const Environment& env = *model->environment;
  const CompileOptions& options = model->options;
  PassContext context{.evaluator = env.evaluator, .ops = env.ops.get(), .added = env.passes, .parallel = env.parallel.get()};
  context.computes_natively = [&](const Node& node, DType dtype) { return ComputesNatively(env, options.place, node, dtype); };
  context.forget = [&](const ConstTensor& constant) { MappedConstants{env.io, model->mapped}.Forget(constant); };
  return RunPasses(context, options.passes, &model->module);
}

Status ValidateAndOptimize(CompiledModel* model) {
  const Environment& env = *model->environment;
  {
    Lap lap(&model->times.validate);
    MSRT_RETURN_IF_ERROR(Validate(&model->module, env.ops.get()));
  }
  PlaceOptions& place = model->options.place;
  place.reduced = place.reduced || (!place.exact && ComputesInBf16(model->module));
  Lap lap(&model->times.passes);
  MSRT_ASSIGN_OR_RETURN(model->passes, RunPassesOn(model));
  return OkStatus();
}

Result<std::shared_ptr<const CompiledModel>> Compile(std::shared_ptr<CompiledModel> model, const CompileOptions& options) {
  model->options = options;
  if (options.keep_packed) model->forms = PackedForms::ForKeeping();
  MSRT_RETURN_IF_ERROR(ValidateAndOptimize(model.get()));
  WarnOfIdlePins(*model);
  MSRT_RETURN_IF_ERROR(CompileGraphs(model.get()));
  if (options.place.reduced) WarnAboutUnusedReduction(*model);
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
  const auto mapped = options.load_by_copy ? std::span<const std::byte>() : bytes->data;
  auto model = CompileBytes(std::move(environment), *std::move(bytes), options, mapped);
  if (!model.ok()) return std::move(model).status().Within(StrCat("model '", path, "'"));
  std::const_pointer_cast<CompiledModel>(*model)->times.map = map_millis;
  return model;
}

Result<std::shared_ptr<const CompiledModel>> CompileBytes(std::shared_ptr<const Environment> environment, Bytes bytes,
                                                          const CompileOptions& options, std::span<const std::byte> mapped) {
  auto model = std::make_shared<CompiledModel>();
  model->environment = std::move(environment);
  model->mapped = mapped;
  {
    Lap lap(&model->times.verify);
    ModelExtras extras;
    MSRT_ASSIGN_OR_RETURN(model->module, Load(std::move(bytes), options.limits, &extras));
    if (!extras.packed.empty()) model->forms = std::make_shared<PackedForms>(std::move(extras.packed), model->environment->log);
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

Result<ModuleEstimate> EstimateModule(std::shared_ptr<const Environment> environment, Module module, const CompileOptions& options) {
  CompiledModel model;
  model.environment = std::move(environment);
  model.module = std::move(module);
  model.options = options;
  model.parallel = model.environment->parallel;
  MSRT_RETURN_IF_ERROR(ValidateAndOptimize(&model));
  double most_saved = 0;
  MSRT_ASSIGN_OR_RETURN(std::vector<Reached> reached, FindReached(model, &model.times.place, &most_saved));
  GraphCompiler::AddEntries(std::move(reached), &model);
  const Environment& env = *model.environment;
  const Host host(env.allocator, model.parallel, env.log, ScaleOf(model, options.place), nullptr);
  ControlPrices prices(host, env.delegates, model.options.place);
  ModuleEstimate estimate;
  estimate.graphs.resize(model.module.graphs.size());
  for (uint32_t g = 0; g < model.views.size(); ++g) {
    if (model.views[g] == nullptr) continue;
    Placer placer(*model.views[g], host, env.delegates, model.options.place, &prices);
    MSRT_RETURN_IF_ERROR(NamingGraph(placer.Query(), model.module, g));
    auto placement = placer.Place();
    if (!placement.ok()) return NamingGraph(std::move(placement).status(), model.module, g);
    estimate.graphs[g] = {std::move(placement->explanations), placement->seconds};
  }
  model.views.clear();  // they look at the module
  estimate.module = std::move(model.module);
  return estimate;
}

ModelExtras NativeExtras(const CompiledModel& model) {
  ModelExtras extras;
  if (model.forms != nullptr) extras.packed = model.forms->Kept(model.module);
  return extras;
}

Result<std::shared_ptr<const Binding>> BindingFor(const CompiledModel& model, const EntryProgram& entry, const BindRequest& request) {
  return entry.bindings->Get(request, [&] { return Bind(*entry.program, model.module, *model.environment->evaluator, request); });
}

std::vector<std::shared_ptr<const EntryProgram>> ProgramsOf(const CompiledModel& model) {
  std::vector<std::shared_ptr<const EntryProgram>> programs;
  for (const auto& graph : model.graphs) programs.push_back(graph == nullptr ? nullptr : graph->current());
  return programs;
}

Status PlaceWithout(const CompiledModel& model, uint32_t graph, const std::shared_ptr<const EntryProgram>& failed,
                    const std::string& delegate, const Status& why) {
  if (model.options.place.strict) return why;
  const std::string reason = StrCat("failed at run time (", why.message(), ")");
  const auto placed = GraphCompiler::PlaceAgain(model, graph, failed, {delegate, "it " + reason});
  if (!placed.ok()) {
    return MakeStatus(why.code(), why.message(), "; without delegate ", delegate, " the model cannot run: ", placed.status().message());
  }
  if (*placed) model.environment->log(LogLevel::kWarning, "delegate ", delegate, " ", reason, "; the model was placed again without it");
  return OkStatus();
}

}  // namespace msrt
