// Interface of passes. A pass rewrites one graph, or the graphs of a module that call each other,
// and keeps their meaning. It reads what it needs to know from PassContext and never asks for a
// delegate by name.
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

// Remaining budget of constant folding: a small file must neither grow without bound nor keep a
// loader busy.
struct FoldBudget {
  double bytes = size_t{256} << 20;  // of new constants
  double work = 150e6;  // operations, and words of 8 bytes moved: some tenths of a second
};

// Remaining number of nodes that passes may copy: nested calls must not make a small file explode
// when they are inlined.
struct CopyBudget {
  size_t nodes = 4096;
};

struct PassContext;
// A user-defined pass.
struct AddedPass {
  std::string name;
  std::function<Status(const PassContext&, Graph*)> run;
};

struct PassContext {
  const Evaluator* evaluator = nullptr;
  const OpSet* ops = nullptr;  // user-defined ops; may be null
  // Maximum size of one folded constant.
  size_t fold_budget_bytes = size_t{16} << 20;
  // Budgets of the whole module; null: each graph has its own.
  FoldBudget* folding = nullptr;
  CopyBudget* copying = nullptr;
  std::span<const AddedPass> added = {};
  // Threads for work on large constants; null: the calling thread does it.
  ParallelFor* parallel = nullptr;
  // Called with a constant of the model that was read and is not needed for a while: its memory may
  // be released. May be null.
  std::function<void(const ConstTensor&)> forget = nullptr;
  // Whether results must not depend on how runs are cut into pieces.
  bool exact = false;
  // Whether some delegate that may run the node computes it in this type at least as fast as in
  // f32; null: none does.
  std::function<bool(const Node&, DType)> computes_natively = nullptr;
};

using PassFn = Status (*)(const PassContext&, Graph*);
// Returns whether the module changed, so that earlier passes may find new work.
using ModulePassFn = Result<bool> (*)(const PassContext&, Module*);

struct PassInfo {
  std::string_view name;
  PassFn run = nullptr;               // for each graph, or
  ModulePassFn run_module = nullptr;  // for all of them together
};

// One report for each run of a pass, and one for each run that was undone.
constexpr std::string_view kUndone = ", undone";
struct PassReport {
  std::string name;  // followed by kUndone if it was undone
  double millis = 0;
  size_t nodes_before = 0, nodes_after = 0;
};

struct PassOptions {
  std::vector<std::string> disabled;  // by name; "all" switches everything off
  bool validate = false;  // infer the whole graph again after each pass (conversion, tests)
};

// Returns the passes in the order of their first run; some run again while control flow becomes
// simpler.
std::span<const PassInfo> AllPasses();

// Runs the passes over every graph of the module. An unknown name in `disabled` is an error that
// lists the known names.
Result<std::vector<PassReport>> RunPasses(const PassContext& context, const PassOptions& options,
                                          Module* module);

}  // namespace msrt
