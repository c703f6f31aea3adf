// A small runtime for tests: built-in delegates, two threads, and a way to run a module from
// tensors to tensors.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/compile/compile.h"
#include "core/run/session.h"

namespace msrt::testing {

std::shared_ptr<Environment> TestEnvironment();
// The same with the default of users: small models run on the calling thread.
std::shared_ptr<Environment> UserEnvironment();

// The names of the built-in delegates.
std::vector<std::string> DelegateNames();

// Compiles for the delegates named (empty: all), runs once, returns copies of the outputs.
Result<std::vector<ConstTensor>> RunModule(const Module& module,
                                           const std::vector<ConstTensor>& inputs,
                                           std::vector<std::string> delegates = {},
                                           std::vector<std::string> disabled_passes = {});

// The same in the given environment.
Result<std::vector<ConstTensor>> RunModuleIn(std::shared_ptr<const Environment> environment,
                                             const Module& module,
                                             const std::vector<ConstTensor>& inputs,
                                             std::vector<std::string> delegates,
                                             std::vector<std::string> disabled_passes);

// One run of an existing session.
Result<std::vector<ConstTensor>> RunSession(Session& session,
                                            const std::vector<ConstTensor>& inputs,
                                            const RunOptions& options = {});

}  // namespace msrt::testing
