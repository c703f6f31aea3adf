// What every pass gets and gives. A pass rewrites one graph, or the graphs of a module that call
// each other, and keeps their meaning; it asks for what it needs here and never for a delegate by
// name.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/log.h"
#include "core/base/parallel_for.h"
#include "ops/evaluator.h"
#include "ops/op_def.h"

namespace msrt {

class OpSet;  // ops/registry.h

// What folding may still make and spend: a small file must neither blow up nor keep a loader busy.
struct FoldBudget {
  double bytes = size_t{256} << 20;  // of new constants
  double work = 150e6;  // operations, and words of 8 bytes moved: some tenths of a second
};

// How many nodes passes may still copy: a small file must not blow up where graphs are written out
// that call graphs.
struct CopyBudget {
  size_t nodes = 4096;
};

struct PassContext;
// A pass that an application brings.
struct AddedPass {
  std::string name;
  std::function<Status(const PassContext&, Graph*)> run;
};

struct PassContext {
  const Evaluator* evaluator = nullptr;
  const OpSet* ops = nullptr;  // known beside the library's
  // No folded constant may be larger than this.
  size_t fold_budget_bytes = size_t{16} << 20;
  // Shared by all graphs of a module; null: each has its own.
  FoldBudget* folding = nullptr;
  CopyBudget* copying = nullptr;
  std::span<const AddedPass> added = {};
  // For work on large constants; null: the calling thread does it.
  ParallelFor* parallel = nullptr;
  // Called with a constant of the model that was read and is not needed for a while: its memory may
  // be given back. Null: nothing happens.
  std::function<void(const ConstTensor&)> forget = nullptr;
  // Whether something that may run the node computes it in this type at least as fast as in f32;
  // null: nothing does.
  std::function<bool(const Node&, DType)> computes_natively = nullptr;
};

using PassFn = Status (*)(const PassContext&, Graph*);
// True: something changed, which may be worth a look by the passes before it.
using ModulePassFn = Result<bool> (*)(const PassContext&, Module*);

struct PassInfo {
  std::string_view name;
  PassFn run = nullptr;               // for each graph, or
  ModulePassFn run_module = nullptr;  // for all of them together
};

// One row for each time that a pass ran, and one for each that was undone.
constexpr std::string_view kUndone = ", undone";
struct PassReport {
  std::string name;  // and kUndone
  double millis = 0;
  size_t nodes_before = 0, nodes_after = 0;
};

struct PassOptions {
  std::vector<std::string> disabled;  // by name; "all" switches everything off
  bool validate = false;  // infer the whole graph again after each pass (conversion, tests)
};

// The passes in the order in which they run first; some run again while control flow becomes
// simpler.
std::span<const PassInfo> AllPasses();

// Runs them over every graph of the module. An unknown name in `disabled` is an error that lists
// the known ones.
Result<std::vector<PassReport>> RunPasses(const PassContext& context, const PassOptions& options,
                                          Module* module);

}  // namespace msrt
