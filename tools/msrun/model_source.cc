#include "tools/msrun/model_source.h"

namespace msrt {
namespace {

constexpr std::string_view kZoo = "zoo:";

}  // namespace

Result<Module> BuildFromZoo(const std::string& model, const zoo::Options& options) {
  return zoo::Build(std::string_view(model).substr(kZoo.size()), options);
}

bool IsZooName(const std::string& model) { return model.starts_with(kZoo); }

Result<Module> ReadModel(Io* io, const std::string& model, ModelExtras* extras) {
  return IsZooName(model) ? BuildFromZoo(model, {}) : LoadFile(io, model, {}, extras);
}

Result<std::shared_ptr<const CompiledModel>> CompileNamed(
    std::shared_ptr<const Environment> environment, const std::string& model,
    const CompileOptions& options) {
  if (!IsZooName(model)) return CompileFile(std::move(environment), model, options);
  MSRT_ASSIGN_OR_RETURN(Module module, BuildFromZoo(model, {}));
  return CompileModule(std::move(environment), std::move(module), options);
}

}  // namespace msrt
