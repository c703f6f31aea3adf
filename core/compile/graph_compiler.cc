#include "core/compile/graph_compiler.h"

#include <algorithm>
#include <deque>

#include "core/compile/first_run.h"
#include "core/compile/homes.h"

namespace msrt {
namespace {

Result<std::shared_ptr<EntryProgram>> PlaceEntry(const CompiledModel& model, uint32_t graph,
                                                 const PlaceOptions& options, LoadTimes* times) {
  const Environment& env = *model.environment;
  const StopWatch watch;
  double place_millis = 0;
  auto host = std::make_shared<const Host>(env.allocator, model.parallel, env.log,
                                           MachineForCosts(model, options), model.forms,
                                           MappedConstants{env.io, model.mapped}, model.packings);
  auto program = RunOnTeam(*model.parallel, [&] {
    return MakeProgram(model.views[graph], std::move(host), env.delegates, options, env.log,
                       model.uploads.get(), &place_millis);
  });
  if (!program.ok()) return std::move(program).status();
  times->place += place_millis;
  times->compile += watch.Millis() - place_millis;
  auto entry = std::make_shared<EntryProgram>();
  entry->program = *std::move(program);
  PlanStateAccess(model.module, model.state_use, graph, entry->program.get());
  entry->bindings = std::make_unique<BindingCache>(model.options.binding_cache_bytes);
  entry->pieces = std::make_unique<PieceKernels>(model.options.binding_cache_bytes);
  return entry;
}

bool IsEntry(const Module& module, const Graph& graph) {
  return std::any_of(module.entries.begin(), module.entries.end(),
                     [&](uint32_t entry) { return &module.graphs[entry] == &graph; });
}

Result<std::shared_ptr<const EntryProgram>> CompileGraph(const CompiledModel& model,
                                                         uint32_t number,
                                                         const std::vector<Dims>& typical,
                                                         PlaceOptions options, LoadTimes* times) {
  const Graph& graph = model.module.graphs[number];
  for (;;) {
    MSRT_ASSIGN_OR_RETURN(std::shared_ptr<const EntryProgram> entry,
                          PlaceEntry(model, number, options, times));
    ScopedTimer timer(&times->prepare);
    if (!model.options.prepare_first_run) return entry;
    Status status = PrepareFirstRun(model, *entry, typical);
    if (status.ok()) return entry;
    const std::string failed = FailedDelegateName(status);
    // The arguments of a called graph are guesses until it is called, and a branch may never run.
    if (failed.empty() && !IsEntry(model.module, graph)) return entry;
    if (failed.empty() || options.strict) return status;
    model.environment->log(LogLevel::kWarning, "delegate ", failed, " failed to bind (",
                           status.message(), "); placing again without it");
    options.failed_delegates.push_back(
        {failed, StrCat("it failed to bind (", status.message(), ")")});
  }
}

}  // namespace

std::optional<Machine> MachineForCosts(const CompiledModel& model, const PlaceOptions& options) {
  if (options.costs != nullptr) return options.costs->origin.machine;
  const std::optional<Machine>& machine = model.environment->machine;
  if (!machine) return machine;
  const double part =
      static_cast<double>(model.parallel->threads()) / model.environment->parallel->threads();
  return Machine{machine->flops_per_second * part, machine->bytes_per_second * part};
}

Status GraphCompiler::Compile(uint32_t graph) {
  std::deque<uint32_t> queue{graph};
  for (; !queue.empty(); queue.pop_front()) {
    const uint32_t next = queue.front();
    std::shared_ptr<const EntryProgram> before = model_.graphs[next]->current();
    if ((next != graph && before != nullptr) || seen_[next]) continue;
    seen_[next] = true;
    auto program = CompileGraph(model_, next, model_.graphs[next]->typical_, options_, &times_);
    if (!program.ok()) return WithGraphName(std::move(program).status(), model_.module, next);
    for (const Step& step : (*program)->program->steps) {
      if (step.control != nullptr)
        queue.insert(queue.end(), step.control->graphs.begin(), step.control->graphs.end());
    }
    made_.push_back({next, *std::move(program), std::move(before)});
  }
  return OkStatus();
}

void GraphCompiler::Install() {
  for (auto made = made_.rbegin(); made != made_.rend(); ++made) {
    ModelEntry& entry = *model_.graphs[made->graph];
    std::lock_guard lock(entry.mutex_);
    if (entry.current_ != made->before) continue;
    entry.failed_delegates_ = options_.failed_delegates;
    entry.current_.swap(made->program);
  }
}

Result<bool> GraphCompiler::Replace(const CompiledModel& model, uint32_t graph,
                                    const std::shared_ptr<const EntryProgram>& failed,
                                    FailedDelegate without) {
  const ModelEntry& entry = *model.graphs[graph];
  PlaceOptions options = model.options.place;
  {
    std::lock_guard lock(model.install_mutex);
    options.failed_delegates = entry.failed_delegates_;
  }
  options.failed_delegates.push_back(std::move(without));
  LoadTimes times;
  GraphCompiler compiler(model, options, &times);
  Status status = entry.current() == failed ? compiler.Compile(graph) : OkStatus();
  std::lock_guard lock(model.install_mutex);
  if (entry.current() != failed) return false;
  // On an error the delegate is not recorded as failed: one that cannot be replaced is tried again
  // by the next run.
  if (!status.ok()) return status;
  compiler.Install();
  return true;
}

Status GraphCompiler::AddEntries(std::vector<ReachableGraph> reachable, CompiledModel* model) {
  const std::vector<std::vector<CarriedPair>> carried = FindCarried(model->module);
  model->views.resize(model->module.graphs.size());
  model->graphs.resize(model->module.graphs.size());
  for (ReachableGraph& r : reachable) {
    r.offered->SetCarried(carried[r.graph]);
    MSRT_ASSIGN_OR_RETURN(auto homes, FindHomes(*model, r.graph));
    r.offered->SetHomes(std::move(homes));
    r.offered->SetModule(&model->views);
    model->views[r.graph] = std::move(r.offered);
    model->graphs[r.graph] = std::make_shared<ModelEntry>();
    model->graphs[r.graph]->typical_ = std::move(r.typical);
  }
  for (uint32_t entry : model->module.entries) model->entries.push_back(model->graphs[entry]);
  return OkStatus();
}

}  // namespace msrt
