// Makes the programs of a model's graphs and installs them, when the model loads and again when a
// delegate fails.
#pragma once

#include "core/compile/compiled_model.h"
#include "core/compile/reachable_graphs.h"

namespace msrt {

// Makes programs for the graphs that it is given, and for the graphs these call that have none.
// `model` and `times` outlive it.
class GraphCompiler {
 public:
  GraphCompiler(const CompiledModel& model, PlaceOptions options, LoadTimes* times)
      : model_(model), options_(std::move(options)), times_(*times), seen_(model.graphs.size()) {}

  // Skips graphs that are called only by control nodes that a delegate runs whole.
  Status Compile(uint32_t graph);

  // Runs that start from now on use the programs made. Callees come first, since a run may reach
  // them at once. A program that another session installed meanwhile stays. The programs replaced
  // are destroyed with this object and not under a lock, since destroying them calls delegates.
  void Install();

  // Makes the program of `graph`, and of the graphs it calls from now on, without `without` and the
  // delegates that failed before, and installs them. False: another session has replaced `failed`
  // meanwhile.
  static Result<bool> Replace(const CompiledModel& model, uint32_t graph,
                              const std::shared_ptr<const EntryProgram>& failed,
                              FailedDelegate without);

  // Fills model->views, graphs and entries.
  static Status AddEntries(std::vector<ReachableGraph> reachable, CompiledModel* model);

 private:
  struct NewProgram {
    uint32_t graph;
    std::shared_ptr<const EntryProgram> program;
    std::shared_ptr<const EntryProgram> before;  // the program it replaces; null: it is the first
  };
  const CompiledModel& model_;
  const PlaceOptions options_;
  LoadTimes& times_;
  std::vector<bool> seen_;  // by graph
  std::vector<NewProgram> made_;
};

// The machine that cost estimates assume: the one whose measured costs are used, else this one,
// with the share of it that runs use.
std::optional<Machine> MachineForCosts(const CompiledModel& model, const PlaceOptions& options);

}  // namespace msrt
