// The model that a command line names: a .msrt file, or zoo:NAME, a network built in memory.
#pragma once

#include <string>

#include "core/compile/compile.h"
#include "tools/msconvert/zoo.h"

namespace msrt {

bool IsZooName(const std::string& model);
// Requires a name of the zoo.
Result<Module> BuildFromZoo(const std::string& model, const zoo::Options& options);
// `extras` (may be null) receives what a file carries beside the graphs.
Result<Module> ReadModel(Io* io, const std::string& model, ModelExtras* extras = nullptr);
Result<std::shared_ptr<const CompiledModel>> CompileNamed(
    std::shared_ptr<const Environment> environment, const std::string& model,
    const CompileOptions& options);

}  // namespace msrt
