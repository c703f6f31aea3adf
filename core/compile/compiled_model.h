// A model that sessions can run: its graphs, and the program of each that a run can reach.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/bind/binding_cache.h"
#include "core/bind/piece_kernels.h"
#include "core/compile/environment.h"
#include "core/delegate/pack_counts.h"
#include "core/delegate/state_forms.h"
#include "core/model/load.h"
#include "core/program/state_use.h"

namespace msrt {

struct CompileOptions {
  Limits limits;
  PassOptions passes;
  PlaceOptions place;
  // Typical dims of the first entry's inputs, by name, for unknown dims; placement and algorithms
  // are chosen for these.
  std::vector<std::pair<std::string, Dims>> typical;
  // Inputs and outputs of entries that the application has on devices: name, device. All others
  // are on the host.
  std::vector<std::pair<std::string, std::string>> io_devices;
  size_t binding_cache_bytes = size_t{64} << 20;  // for each of BindingCache and PieceKernels
  bool load_by_copy = false;
  // Binds the entries at their typical shapes and prepares the kernels, so that the first run is as
  // fast as the others. Off for models that run by pieces.
  bool prepare_first_run = true;
  bool keep_packed = false;  // keeps copies of all weights that kernels pack, for NativeExtras; the
                             // file's packed weights are not used then
};

// Where the time of a load went, in milliseconds.
struct LoadTimes {
  double map = 0, verify = 0, validate = 0, passes = 0, place = 0, compile = 0, prepare = 0;
  double total() const { return map + verify + validate + passes + place + compile + prepare; }
};

struct EntryProgram {
  std::unique_ptr<Program> program;
  std::unique_ptr<BindingCache> bindings;  // made of the program's kernels
  std::unique_ptr<PieceKernels> pieces;    // the same
};

// A function of a model that sessions run, or a graph that such functions call. Its program is
// immutable, but is replaced when a delegate fails.
class ModelEntry {
 public:
  // Null: not compiled, because it is called only by control nodes that a delegate runs whole.
  std::shared_ptr<const EntryProgram> current() const {
    std::lock_guard lock(mutex_);
    return current_;
  }

  // Whether current() would return `held`; cheaper, since no owner is counted.
  bool IsCurrent(const std::shared_ptr<const EntryProgram>& held) const {
    std::lock_guard lock(mutex_);
    return held == current_;
  }

 private:
  friend class GraphCompiler;
  mutable std::mutex mutex_;
  std::shared_ptr<const EntryProgram> current_;
  std::vector<Dims> typical_;  // dims of its inputs that it is placed for
  std::vector<FailedDelegate>
      failed_delegates_;  // at run time; guarded by CompiledModel::install_mutex
};

// Immutable but for binding caches and entries, which lock themselves: shared by any number of
// sessions and threads.
struct CompiledModel {
  std::shared_ptr<const Environment> environment;
  Module module;
  CompileOptions options;
  std::shared_ptr<ParallelFor>
      parallel;        // used by its runs: the environment's, or the calling thread alone
  StateUse state_use;  // of the module's graphs
  std::shared_ptr<StateForms> state_forms = std::make_shared<StateForms>();
  std::shared_ptr<PackCounts> packings = std::make_shared<PackCounts>();  // while it lives
  OfferedModule views;  // the graphs as delegates see them; outlives all that they compile
  std::vector<std::shared_ptr<ModelEntry>> entries;  // one for each of module.entries
  std::vector<std::shared_ptr<ModelEntry>> graphs;   // by graph of the module; null if unreachable
  // The constants that programs have on devices.
  std::shared_ptr<UploadedConstants> uploads = std::make_shared<UploadedConstants>();
  std::shared_ptr<PackedForms> forms;  // those of the file, or those being collected; null: neither
  mutable std::mutex install_mutex;   // held while programs are replaced, never while they are made
  std::span<const std::byte> mapped;  // the mapped file; empty: not mapped
  LoadTimes times;
  std::vector<PassReport> passes;
};

// The programs by graph of the module. Null for a graph that is unreachable, or called only by
// control nodes that a delegate runs whole.
std::vector<std::shared_ptr<const EntryProgram>> ProgramsOf(const CompiledModel& model);

// Returns the binding for these shapes, from the cache or new.
Result<std::shared_ptr<const Binding>> BindingFor(const CompiledModel& model,
                                                  const EntryProgram& entry,
                                                  const BindRequest& request);

// The packed weights that a file of `model.module` carries so that a load on a machine of this kind
// packs nothing: everything that kernels have packed so far, of a model compiled with keep_packed.
// The placement is not included: most of its time goes into querying the delegates, which a stored
// placement would need too.
ModelExtras NativeExtras(const CompiledModel& model);

}  // namespace msrt
