// The one list of passes, and the loop that runs them.
#include <algorithm>
#include <optional>

#include "core/base/clock.h"
#include "core/graph/constants.h"
#include "core/passes/drop_dead_carried.h"
#include "core/passes/eliminate_moves.h"
#include "core/passes/fold_batchnorm.h"
#include "core/passes/fold_constants.h"
#include "core/passes/fold_control.h"
#include "core/passes/fold_pad.h"
#include "core/passes/fold_scale.h"
#include "core/passes/fold_shapes.h"
#include "core/passes/fuse_epilogue.h"
#include "core/passes/hoist_invariants.h"
#include "core/passes/inline_calls.h"
#include "core/passes/lower_einsum.h"
#include "core/passes/merge_common.h"
#include "core/passes/pass.h"
#include "core/passes/recognize_activations.h"
#include "core/passes/recognize_attention.h"
#include "core/passes/recognize_norms.h"
#include "core/passes/recognize_quantized.h"
#include "core/passes/recover_loops.h"
#include "core/passes/remove_dead.h"
#include "core/passes/simplify_products.h"
#include "core/passes/split_statistics.h"
#include "core/passes/thread_steps.h"
#include "core/passes/unroll_loops.h"
#include "core/passes/widen_half.h"
#include "ops/control.h"
#include "ops/validate.h"

namespace msrt {
namespace {

// Control flow comes first, since it decides which nodes exist. It depends on constants and shapes
// and makes more of them known, so those passes alternate. Passes that simplify and normalise
// graphs come next, so that patterns are found. Chains are recognised before their parts are folded
// into their neighbours. Products absorb the moves around them, and epilogues are fused last.
constexpr PassInfo kPasses[] = {
    {.name = "inline_calls", .run_module = InlineCalls},
    {.name = "recover_loops", .run_module = RecoverLoops},
    {"fold_constants", FoldConstants},
    {"fold_shapes", FoldShapes},
    {.name = "fold_control", .run_module = FoldControl},
    {.name = "unroll_loops", .run_module = UnrollLoops},
    {.name = "hoist_invariants", .run_module = HoistInvariants},
    {.name = "drop_dead_carried", .run_module = DropDeadCarried},
    {"widen_half", WidenHalf},
    {"recognize_quantized", RecognizeQuantized},
    {"widen_weights", WidenWeights},
    {"lower_einsum", LowerEinsum},
    {"merge_common", MergeCommon},
    {"eliminate_moves", EliminateMoves},
    {"fold_batchnorm", FoldBatchNorm},
    {"recognize_norms", RecognizeNorms},
    {"recognize_activations", RecognizeActivations},
    {"recognize_attention", RecognizeAttention},
    {"fold_pad", FoldPad},
    {"fold_scale", FoldScale},
    {"simplify_products", SimplifyProducts},
    {"split_statistics", SplitStatistics},
    {"fuse_epilogue", FuseEpilogue},
    {"remove_dead", RemoveDead},
};

// The passes before this one run again as long as control flow changes: once for each level of
// nesting.
constexpr std::string_view kSettledBefore = "widen_half";
constexpr int kMaxRounds = 16;

// User-defined passes see graphs that are simplified and not yet fused.
constexpr std::string_view kAddedBefore = "simplify_products";

Status CheckNames(const PassContext& context, const std::vector<std::string>& disabled) {
  std::vector<std::string_view> names;
  for (const PassInfo& p : kPasses) names.push_back(p.name);
  for (const AddedPass& p : context.added) names.push_back(p.name);
  for (const std::string& name : disabled) {
    if (name == "all" || std::find(names.begin(), names.end(), name) != names.end()) continue;
    std::string all;
    for (std::string_view n : names) StrAppend(&all, all.empty() ? "" : ", ", n);
    return InvalidArgument("there is no pass '", name, "'; the passes are ", all);
  }
  return OkStatus();
}

size_t NodeCount(const Module& module) {
  size_t nodes = 0;
  for (const Graph& g : module.graphs) nodes += g.nodes.size();
  return nodes;
}

bool HasControlFlow(const Module& module) {
  return module.graphs.size() > 1 ||
         std::any_of(module.main().nodes.begin(), module.main().nodes.end(), IsControl);
}

// Runs passes one by one and reports on each.
class Pipeline {
 public:
  Pipeline(const PassContext& context, const PassOptions& options, Module* module)
      : context_(context), options_(options), module_(module) {
    // Weights of four bits grow at most sixteenfold; a module without them uses the default.
    folding_.bytes = std::max(folding_.bytes, 16.0 * static_cast<double>(ConstantBytes(*module)));
    if (context_.folding == nullptr) context_.folding = &folding_;
    if (context_.copying == nullptr) context_.copying = &copying_;
  }

  Result<std::vector<PassReport>> Run() {
    const PassInfo* const settled =
        std::find_if(std::begin(kPasses), std::end(kPasses),
                     [](const auto& p) { return p.name == kSettledBefore; });
    bool changed = true;
    for (int round = 0; changed && round < kMaxRounds; ++round) {
      changed = false;
      for (const PassInfo& pass : std::span(std::begin(kPasses), settled))
        MSRT_RETURN_IF_ERROR(RunBuiltin(pass, &changed));
    }
    for (const PassInfo& pass : std::span(settled, std::end(kPasses))) {
      if (pass.name == kAddedBefore) {
        for (const AddedPass& added : context_.added) MSRT_RETURN_IF_ERROR(RunAdded(added));
      }
      MSRT_RETURN_IF_ERROR(RunBuiltin(pass, &changed));
    }
    return std::move(reports_);
  }

 private:
  bool Off(std::string_view name) const {
    return std::any_of(options_.disabled.begin(), options_.disabled.end(),
                       [&](const std::string& d) { return d == name || d == "all"; });
  }

  // A pass may find that a node cannot run, in a branch that may never run. That is an error of a
  // run that reaches the node, not of the model. So a pass that makes a model with control flow
  // invalid is undone.
  Status RunBuiltin(const PassInfo& pass, bool* changed) {
    if (Off(pass.name)) return OkStatus();
    std::optional<Module> before;
    if (options_.validate && HasControlFlow(*module_)) before = *module_;
    bool has_changed = false;
    const Status status = Timed(pass.name, options_.validate, [&]() -> Status {
      if (pass.run != nullptr) return OnEachGraph(pass.run);
      if (!HasControlFlow(*module_)) return OkStatus();
      MSRT_ASSIGN_OR_RETURN(has_changed, pass.run_module(context_, module_));
      return OkStatus();
    });
    if (before && status.code() == Code::kInvalidModel) {
      reports_.push_back({StrCat(pass.name, kUndone), 0, NodeCount(*module_), NodeCount(*before)});
      *module_ = *std::move(before);
      return OkStatus();
    }
    *changed = *changed || has_changed;
    return status;
  }
  Status RunAdded(const AddedPass& added) {
    return Timed(added.name, /*validate=*/true, [&] { return OnEachGraph(added.run); });
  }

  template <typename Pass>
  Status OnEachGraph(const Pass& pass) {
    for (Graph& graph : module_->graphs) MSRT_RETURN_IF_ERROR(pass(context_, &graph));
    return OkStatus();
  }

  template <typename Work>
  Status Timed(std::string_view name, bool validate, const Work& work) {
    if (Off(name)) return OkStatus();
    const StopWatch watch;
    PassReport report{std::string(name), 0, NodeCount(*module_), 0};
    MSRT_RETURN_IF_ERROR(work().Within(StrCat("pass ", name)));
    report.millis = watch.Millis();
    report.nodes_after = NodeCount(*module_);
    reports_.push_back(report);
    if (!validate) return OkStatus();
    return Validate(module_, context_.ops).Within(StrCat("after pass ", name));
  }

  PassContext context_;
  const PassOptions& options_;
  Module* const module_;
  FoldBudget folding_;
  CopyBudget copying_;
  std::vector<PassReport> reports_;
};

}  // namespace

std::span<const PassInfo> AllPasses() { return kPasses; }

Result<std::vector<PassReport>> RunPasses(const PassContext& context, const PassOptions& options,
                                          Module* module) {
  MSRT_RETURN_IF_ERROR(CheckNames(context, options.disabled));
  MSRT_RETURN_IF_ERROR(ThreadSteps(module));
  return Pipeline(context, options, module).Run();
}

}  // namespace msrt
