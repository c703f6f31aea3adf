// Plugins: shared libraries that bring devices, delegates and kernels. Loading one runs its code,
// so a path comes from the application, never from a model.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/delegate/delegate.h"
#include "core/extend/registered_kernel.h"
#include "core/extend/registered_rewrite.h"

namespace msrt {

// The objects that a plugin or an application registers at once. Each keeps its library loaded.
struct Registration {
  std::vector<std::shared_ptr<const Device>> devices = {};
  std::vector<std::shared_ptr<const Delegate>> delegates = {};
  std::vector<RegisteredKernel> kernels = {};
  std::vector<AddedPass> passes = {};
  std::vector<RegisteredImporter> importers = {};
};

// Loads the library and calls its entry function with the options. On an error nothing stays
// registered or loaded. Its delegates may refer to its own devices and to `devices`.
Result<Registration> LoadPlugin(const std::string& path, const std::string& options,
                                const CallbackServices& services = {},
                                std::span<const std::shared_ptr<const Device>> devices = {});

// Adds all devices or delegates to `registered`, or none if a name is already taken.
Status AddDevices(std::span<const std::shared_ptr<const Device>> added,
                  std::vector<std::shared_ptr<const Device>>* registered);
Status AddDelegates(std::span<const std::shared_ptr<const Delegate>> added,
                    std::vector<std::shared_ptr<const Delegate>>* registered);

}  // namespace msrt
