#include "core/compile/compile.h"

#include "core/compile/graph_compiler.h"
#include "core/compile/homes.h"
#include "core/compile/optimize.h"
#include "core/compile/unused_options.h"

namespace msrt {
namespace {

Status CompileGraphs(CompiledModel* model) {
  const Environment& env = *model->environment;
  model->state_use = StateUse(model->module);
  ReachableGraphs reachable;
  {
    ScopedTimer timer(&model->times.place);
    MSRT_ASSIGN_OR_RETURN(reachable, FindReachableGraphs(*model));
  }
  const bool alone = env.parallel->threads() > 1 &&
                     reachable.seconds_saved <= env.wake_threads_seconds && InputsAreKnown(*model);
  model->parallel = alone ? std::shared_ptr<ParallelFor>(MakeSerial()) : env.parallel;
  MSRT_RETURN_IF_ERROR(CheckHomeNames(*model));
  MSRT_RETURN_IF_ERROR(GraphCompiler::AddEntries(std::move(reachable.graphs), model));
  GraphCompiler compiler(*model, model->options.place, &model->times);
  for (uint32_t entry : model->module.entries) MSRT_RETURN_IF_ERROR(compiler.Compile(entry));
  compiler.Install();
  return OkStatus();
}

Result<std::shared_ptr<const CompiledModel>> Compile(std::shared_ptr<CompiledModel> model,
                                                     const CompileOptions& options) {
  model->options = options;
  if (options.keep_packed) model->forms = PackedForms::ForKeeping();
  MSRT_RETURN_IF_ERROR(ValidateAndOptimize(model.get()));
  WarnAboutUnusedPins(*model);
  MSRT_RETURN_IF_ERROR(CompileGraphs(model.get()));
  if (options.place.reduced) WarnAboutUnusedReduction(*model);
  return std::shared_ptr<const CompiledModel>(std::move(model));
}

}  // namespace

Result<std::shared_ptr<const CompiledModel>> CompileFile(
    std::shared_ptr<const Environment> environment, const std::string& path,
    const CompileOptions& options) {
  const StopWatch watch;
  const Environment& env = *environment;
  auto bytes = options.load_by_copy ? env.io->ReadFile(path, env.allocator) : env.io->MapFile(path);
  if (!bytes.ok()) return std::move(bytes).status();
  const double map_millis = watch.Millis();
  const auto mapped = options.load_by_copy ? std::span<const std::byte>() : bytes->data;
  auto model = CompileBytes(std::move(environment), *std::move(bytes), options, mapped);
  if (!model.ok()) return std::move(model).status().Within(StrCat("model '", path, "'"));
  std::const_pointer_cast<CompiledModel>(*model)->times.map = map_millis;
  return model;
}

Result<std::shared_ptr<const CompiledModel>> CompileBytes(
    std::shared_ptr<const Environment> environment, Bytes bytes, const CompileOptions& options,
    std::span<const std::byte> mapped) {
  auto model = std::make_shared<CompiledModel>();
  model->environment = std::move(environment);
  model->mapped = mapped;
  {
    ScopedTimer timer(&model->times.verify);
    ModelExtras extras;
    MSRT_ASSIGN_OR_RETURN(model->module, Load(std::move(bytes), options.limits, &extras));
    if (!extras.packed.empty())
      model->forms =
          std::make_shared<PackedForms>(std::move(extras.packed), model->environment->log);
  }
  return Compile(std::move(model), options);
}

Result<std::shared_ptr<const CompiledModel>> CompileModule(
    std::shared_ptr<const Environment> environment, Module module, const CompileOptions& options) {
  auto model = std::make_shared<CompiledModel>();
  model->environment = std::move(environment);
  model->module = std::move(module);
  return Compile(std::move(model), options);
}

}  // namespace msrt
