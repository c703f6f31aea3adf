// Plugins: shared libraries that bring delegates and kernels. Loading one runs its code, so a path
// comes from the application, never from a model.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/delegate/delegate.h"
#include "core/extend/registered_kernel.h"
#include "core/extend/registered_rewrite.h"

namespace msrt {

// What a plugin, or an application by itself, registers at once. The library stays loaded as long
// as anything of it lives.
struct Registration {
  std::vector<std::shared_ptr<const Delegate>> delegates;
  std::vector<RegisteredKernel> kernels;
  std::vector<AddedPass> passes = {};
  std::vector<RegisteredImporter> importers = {};
};

// Loads the library and calls its entry with the options. On an error nothing of it remains.
Result<Registration> LoadPlugin(const std::string& path, const std::string& options,
                                const CallbackServices& services = {});

// Joins the registered ones, all or none: names must be new.
Status AddDelegates(std::span<const std::shared_ptr<const Delegate>> added,
                    std::vector<std::shared_ptr<const Delegate>>* registered);

}  // namespace msrt
