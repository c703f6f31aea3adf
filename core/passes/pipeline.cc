// The one list of passes, and the loop that runs them.
#include <algorithm>

#include "core/base/clock.h"
#include "core/graph/constants.h"
#include "core/passes/eliminate_moves.h"
#include "core/passes/fold_batchnorm.h"
#include "core/passes/fold_constants.h"
#include "core/passes/fold_pad.h"
#include "core/passes/fold_scale.h"
#include "core/passes/fold_shapes.h"
#include "core/passes/fuse_epilogue.h"
#include "core/passes/merge_common.h"
#include "core/passes/pass.h"
#include "core/passes/recognize_activations.h"
#include "core/passes/recognize_attention.h"
#include "core/passes/recognize_norms.h"
#include "core/passes/remove_dead.h"
#include "ops/validate.h"

namespace msrt {
namespace {

// What makes graphs smaller and alike comes first, so that patterns are found; what a chain means is recognised before its parts are folded
// into their neighbours; epilogues are fused last, from what is left.
constexpr PassInfo kPasses[] = {
    {"fold_constants", FoldConstants},
    {"fold_shapes", FoldShapes},
    {"widen_weights", WidenWeights},
    {"merge_common", MergeCommon},
    {"eliminate_moves", EliminateMoves},
    {"fold_batchnorm", FoldBatchNorm},
    {"recognize_norms", RecognizeNorms},
    {"recognize_activations", RecognizeActivations},
    {"recognize_attention", RecognizeAttention},
    {"fold_pad", FoldPad},
    {"fold_scale", FoldScale},
    {"fuse_epilogue", FuseEpilogue},
    {"remove_dead", RemoveDead},
};

// What applications bring sees graphs that are simple and not yet fused.
constexpr std::string_view kAddedBefore = "fuse_epilogue";

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

}  // namespace

std::span<const PassInfo> AllPasses() { return kPasses; }

Result<std::vector<PassReport>> RunPasses(const PassContext& context, const PassOptions& options, Module* module) {
  MSRT_RETURN_IF_ERROR(CheckNames(context, options.disabled));
  const auto off = [&](std::string_view name) {
    return std::any_of(options.disabled.begin(), options.disabled.end(), [&](const std::string& d) { return d == name || d == "all"; });
  };
  // Weights of four bits become sixteen times as large at most; a module without them makes do with the usual.
  FoldBudget folding;
  folding.bytes = std::max(folding.bytes, 16.0 * static_cast<double>(ConstantBytes(*module)));
  PassContext shared = context;
  if (shared.folding == nullptr) shared.folding = &folding;
  std::vector<PassReport> reports;
  const auto run = [&](std::string_view name, const auto& pass, bool validate) -> Status {
    if (off(name)) return OkStatus();
    const StopWatch watch;
    PassReport report{std::string(name), 0, NodeCount(*module), 0};
    for (Graph& graph : module->graphs) {
      Status status = pass(shared, &graph);
      if (!status.ok()) return std::move(status).Within(StrCat("pass ", name));
    }
    report.millis = watch.Millis();
    report.nodes_after = NodeCount(*module);
    reports.push_back(report);
    if (!validate) return OkStatus();
    return Validate(module, context.ops).Within(StrCat("after pass ", name));
  };
  for (const PassInfo& pass : kPasses) {
    if (pass.name == kAddedBefore) {
      for (const AddedPass& added : context.added) MSRT_RETURN_IF_ERROR(run(added.name, added.run, /*validate=*/true));
    }
    MSRT_RETURN_IF_ERROR(run(pass.name, pass.run, options.validate));
  }
  return reports;
}

}  // namespace msrt
