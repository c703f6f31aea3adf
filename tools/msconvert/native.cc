#include "tools/msconvert/native.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/msconvert/environment.h"

namespace msrt {
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
  return nlohmann::json{
      {"packed_weights", packed.weights}, {"packed_bytes", packed.bytes}, {"isa", packed.isas}}
      .dump();
}

Result<NativeModel> PackForThisMachine(const Environment& plugins, Module module,
                                       const NativeOptions& options) {
  const std::vector<NamedType> inputs = InputsOf(module);
  MSRT_ASSIGN_OR_RETURN(const BoundSizes typical,
                        BoundSizes::Bind("--typical", options.typical, inputs, module));
  CompileOptions compile;
  compile.passes.disabled = options.disabled_passes;
  for (const NamedType& input : inputs)
    compile.typical.emplace_back(input.name, typical.OfInput(input.name, input.type).dims);
  compile.keep_packed = true;
  MSRT_ASSIGN_OR_RETURN(
      const std::shared_ptr<const CompiledModel> model,
      CompileModule(LocalEnvironment(plugins, options.threads), std::move(module), compile));
  return NativeModel{model->module, NativeExtras(*model)};
}

}  // namespace msrt
