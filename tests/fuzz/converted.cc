#include "tests/fuzz/converted.h"

#include <cstdio>
#include <cstdlib>

#include "core/model/load.h"
#include "core/model/sample_models.h"
#include "core/model/write.h"
#include "core/passes/pass.h"
#include "delegates/builtin.h"
#include "ops/validate.h"
#include "tests/fuzz/targets.h"

namespace msrt::testing {
namespace {

constexpr size_t kMostFoldedBytes = 1 << 16;
constexpr double kMostFoldingWork = 1e6;

// What was taken so far must be taken all the way.
void RequireOk(const Status& status, const char* stage) {
  if (status.ok()) return;
  std::fprintf(stderr, "finding: %s: %s\n", stage, status.message().c_str());
  std::abort();
}

Status Optimize(std::vector<std::string> disabled, Module* module) {
  FoldBudget folding{.bytes = kMostFoldedBytes, .work = kMostFoldingWork};
  const PassContext context{.evaluator = &BuiltinEvaluator(), .fold_budget_bytes = kMostFoldedBytes, .folding = &folding};
  return RunPasses(context, {.disabled = std::move(disabled), .validate = true}, module).status();
}

// Sizes that contradict each other may come to light only when they are computed, so folding may refuse what validation took. No other pass
// may.
bool FoldingRefuses(Module module) {
  std::vector<std::string> others;
  for (const PassInfo& pass : AllPasses()) {
    if (pass.name != "fold_constants" && pass.name != "fold_shapes") others.emplace_back(pass.name);
  }
  return !Optimize(others, &module).ok();
}

}  // namespace

bool FuzzConverted(Module module) {
  const Status valid = Validate(&module);
  RequireAnswer(valid);
  if (!valid.ok()) return false;
  const Module before = module;
  if (const Status optimized = Optimize({}, &module); !optimized.ok()) {
    RequireAnswer(optimized);
    if (FoldingRefuses(before)) return false;
    RequireOk(optimized, "passes");
  }
  const auto file = SerializeModel(module);
  if (!file.ok()) RequireAnswer(file.status());
  if (!file.ok()) return false;
  auto loaded = Load(AlignedCopy(*file), Limits());
  RequireOk(loaded.status(), "the file that was written");
  RequireOk(Validate(&*loaded), "the module that was written");
  return true;
}

}  // namespace msrt::testing
