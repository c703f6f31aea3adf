// Plugins: shared libraries that bring delegates. Loading one runs its code, so a path comes from the application, never from a model.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/place/delegate.h"

namespace msrt {

// What a plugin registered. The library stays loaded as long as anything of it lives.
struct Plugin {
  std::vector<std::shared_ptr<const Delegate>> delegates;
};

// Loads the library and calls its entry with the options. On an error nothing of it remains.
Result<Plugin> LoadPlugin(const std::string& path, const std::string& options);

// Joins the registered ones, all or none: names must be new.
Status AddDelegates(std::span<const std::shared_ptr<const Delegate>> added, std::vector<std::shared_ptr<const Delegate>>* registered);

}  // namespace msrt
