// The way of the data, in one place: bytes -> Module -> passes -> Program. What comes after (binding, running) needs input shapes
// and belongs to core/run.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/io.h"
#include "core/bind/binding_cache.h"
#include "core/model/load.h"
#include "core/passes/pass.h"
#include "core/place/place.h"
#include "core/place/registered_kernel.h"
#include "ops/registry.h"

namespace msrt {

// What a runtime lends to everything it makes. All of it is thread-safe and outlives the models.
struct Environment {
  Allocator* allocator = DefaultAllocator();
  Io* io = DefaultIo();
  Clock* clock = DefaultClock();
  Log log;
  std::shared_ptr<ParallelFor> parallel;
  std::vector<std::shared_ptr<const Delegate>> delegates;
  const Evaluator* evaluator = nullptr;
  std::vector<RegisteredKernel> kernels;  // behind the delegate "kernels"
  std::vector<AddedPass> passes;          // that applications bring
  std::shared_ptr<const OpSet> ops;       // that applications define; null: none. Nodes point to its entries
  std::optional<Machine> machine;         // measured; empty: what is typical
  // To wake a team and to wait for it at the end. Models that it would not shorten by more, hand-overs between steps included, run on the
  // calling thread alone.
  double team_seconds = 50e-6;
};

struct CompileOptions {
  Limits limits;
  PassOptions passes;
  PlaceOptions place;
  // Typical dims of the first entry's inputs, by name, for unknown dims; placement and algorithms are chosen for these.
  std::vector<std::pair<std::string, Dims>> typical;
  size_t binding_cache_bytes = size_t{64} << 20;
  bool load_by_copy = false;
  bool keep_packed = false;  // copies of all weights that kernels pack, for NativeExtras; those that a file brings are not used then
};

// Where the time of a load went, in milliseconds.
struct LoadTimes {
  double map = 0, verify = 0, validate = 0, passes = 0, place = 0, compile = 0, prepare = 0;
  double total() const { return map + verify + validate + passes + place + compile + prepare; }
};

struct CompiledModel;

struct EntryProgram {
  std::unique_ptr<Program> program;
  std::unique_ptr<BindingCache> bindings;  // made of the program's kernels
};

// A function of a model that sessions run, or a graph that such functions call. Its program is immutable, but another one takes its place
// when a delegate is lost.
class ModelEntry {
 public:
  // Null: it has none yet, because only nodes call it that a delegate took whole.
  std::shared_ptr<const EntryProgram> current() const {
    std::lock_guard lock(mutex_);
    return current_;
  }

 private:
  friend class GraphCompiler;
  mutable std::mutex mutex_;
  std::shared_ptr<const EntryProgram> current_;
  std::vector<Dims> typical_;       // of its inputs, to place it for
  std::vector<LostDelegate> lost_;  // at run time; guarded by CompiledModel::replacing
};

// Immutable but for binding caches and entries, which lock themselves: shared by any number of sessions and threads.
struct CompiledModel {
  std::shared_ptr<const Environment> environment;
  Module module;
  CompileOptions options;
  std::shared_ptr<ParallelFor> parallel;             // what its runs use: the environment's, or the calling thread alone
  PlacedModule views;                                // the graphs as delegates see them; outlives all that they compile
  std::vector<std::shared_ptr<ModelEntry>> entries;  // one for each of module.entries
  std::vector<std::shared_ptr<ModelEntry>> graphs;   // by graph of the module; null where no entry leads
  std::shared_ptr<PackedForms> forms;                // that the file brings, or to be kept; null: neither
  mutable std::mutex replacing;                      // held while programs take the place of others, never while they are made
  std::span<const std::byte> mapped;                 // the file, while it is mapped; empty: it was not
  LoadTimes times;
  std::vector<PassReport> passes;
};

Result<std::shared_ptr<const CompiledModel>> CompileFile(std::shared_ptr<const Environment> environment, const std::string& path,
                                                         const CompileOptions& options);
// `mapped`: the bytes, where they are a mapping of the environment's io; empty otherwise.
Result<std::shared_ptr<const CompiledModel>> CompileBytes(std::shared_ptr<const Environment> environment, Bytes bytes,
                                                          const CompileOptions& options, std::span<const std::byte> mapped = {});
// For graphs that were built, not loaded.
Result<std::shared_ptr<const CompiledModel>> CompileModule(std::shared_ptr<const Environment> environment, Module module,
                                                           const CompileOptions& options);

// What a file of `model.module` carries beside it so that a load on a machine of this kind packs nothing: all that kernels have packed so
// far, of a model compiled with keep_packed. The placement is not among it: most of the time that placing takes goes into asking the
// delegates, which a stored one would need too.
ModelExtras NativeExtras(const CompiledModel& model);

// By graph of the module; null where there is none: no entry leads there, or only nodes that a delegate took whole.
std::vector<std::shared_ptr<const EntryProgram>> ProgramsOf(const CompiledModel& model);

// The binding for these shapes, from the cache or new.
Result<std::shared_ptr<const Binding>> BindingFor(const CompiledModel& model, const EntryProgram& entry, const BindRequest& request);

// A run of `failed` met a delegate that no longer works: places its graph again without it, unless another session has done so already. If
// that cannot be (the model is strict, nobody else can run it), the error is `why` with what stood in the way. Sessions that meet it at
// once each place the graph, and the first that is done counts: whoever waited for another could wait for ever, as that one calls delegates
// and the application, which may wait in turn.
Status PlaceWithout(const CompiledModel& model, uint32_t graph, const std::shared_ptr<const EntryProgram>& failed,
                    const std::string& delegate, const Status& why);

}  // namespace msrt
