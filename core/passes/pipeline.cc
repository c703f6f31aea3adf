// The one list of passes, and the loop that runs them.
#include <algorithm>

#include "core/base/clock.h"
#include "core/passes/fold_batchnorm.h"
#include "core/passes/fold_constants.h"
#include "core/passes/fuse_epilogue.h"
#include "core/passes/merge_common.h"
#include "core/passes/pass.h"
#include "core/passes/remove_dead.h"
#include "ops/validate.h"

namespace msrt {
namespace {

constexpr PassInfo kPasses[] = {
    {"fold_constants", FoldConstants}, {"merge_common", MergeCommon}, {"fold_batchnorm", FoldBatchNorm},
    {"fuse_epilogue", FuseEpilogue},   {"remove_dead", RemoveDead},
};

Status CheckNames(const std::vector<std::string>& disabled) {
  for (const std::string& name : disabled) {
    const bool known = std::any_of(std::begin(kPasses), std::end(kPasses), [&](const PassInfo& p) { return p.name == name; });
    if (known || name == "all") continue;
    std::string all;
    for (const PassInfo& p : kPasses) StrAppend(&all, all.empty() ? "" : ", ", p.name);
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
  MSRT_RETURN_IF_ERROR(CheckNames(options.disabled));
  const auto off = [&](std::string_view name) {
    return std::any_of(options.disabled.begin(), options.disabled.end(), [&](const std::string& d) { return d == name || d == "all"; });
  };
  FoldBudget folding;
  PassContext shared = context;
  if (shared.folding == nullptr) shared.folding = &folding;
  std::vector<PassReport> reports;
  for (const PassInfo& pass : kPasses) {
    if (off(pass.name)) continue;
    const StopWatch watch;
    PassReport report{pass.name, 0, NodeCount(*module), 0};
    for (Graph& graph : module->graphs) {
      Status status = pass.run(shared, &graph);
      if (!status.ok()) return std::move(status).Within(StrCat("pass ", pass.name));
    }
    report.millis = watch.Millis();
    report.nodes_after = NodeCount(*module);
    reports.push_back(report);
    if (options.validate) {
      Status status = Validate(module, context.ops);
      if (!status.ok()) return std::move(status).Within(StrCat("after pass ", pass.name));
    }
  }
  return reports;
}

}  // namespace msrt
