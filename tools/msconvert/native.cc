#include "tools/msconvert/native.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "delegates/builtin.h"

namespace msrt {
namespace {

Status CheckNames(const std::map<std::string, Dims>& typical, const Graph& graph) {
  for (const auto& [name, dims] : typical) {
    bool found = false;
    std::string known;
    for (ValueId v : graph.inputs) {
      found = found || graph.value(v).name == name;
      StrAppend(&known, known.empty() ? "" : ", ", graph.value(v).name);
    }
    if (!found) return NotFound("--typical: the model has no input '", name, "'; it has ", known);
  }
  return OkStatus();
}

}  // namespace

std::string NativeModel::Text() const {
  const PackedSummary packed = Summarize(extras.packed);
  std::string isas;
  for (const std::string& isa : packed.isas) StrAppend(&isas, isas.empty() ? " for " : ", ", isa);
  char bytes[32];
  std::snprintf(bytes, sizeof bytes, ", %.1f MB", static_cast<double>(packed.bytes) * 1e-6);
  return StrCat("native: ", packed.weights, " packed weights", isas, bytes, "\n");
}

std::string NativeModel::Json() const {
  const PackedSummary packed = Summarize(extras.packed);
  return nlohmann::json{{"packed_weights", packed.weights}, {"packed_bytes", packed.bytes}, {"isa", packed.isas}}.dump();
}

Result<NativeModel> PackForThisMachine(const Environment& plugins, Module module, const NativeOptions& options) {
  MSRT_RETURN_IF_ERROR(CheckNames(options.typical, module.main()));
  auto environment = std::make_shared<Environment>(plugins);
  environment->parallel = MakeDefaultParallel(options.threads > 0 ? options.threads : AvailableCores());
  environment->evaluator = &BuiltinEvaluator();
  environment->delegates = BuiltinDelegates();
  environment->delegates.insert(environment->delegates.end(), plugins.delegates.begin(), plugins.delegates.end());
  CompileOptions compile;
  compile.passes.disabled = options.disabled_passes;
  compile.typical.assign(options.typical.begin(), options.typical.end());
  compile.keep_packed = true;
  MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<const CompiledModel> model, CompileModule(environment, std::move(module), compile));
  return NativeModel{model->module, NativeExtras(*model)};
}

}  // namespace msrt
