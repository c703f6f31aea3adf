#include "core/place/plugin.h"

#include <dlfcn.h>

#include <algorithm>

namespace msrt {
namespace {

// A shared library, loaded as long as anything of it is in use.
Result<std::shared_ptr<void>> OpenLibrary(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return NotFound("plugin '", path, "' cannot be loaded: ", why == nullptr ? "no reason given" : why);
  }
  return std::shared_ptr<void>(handle, [](void* h) { dlclose(h); });
}

// What a plugin registers while its entry runs. Members are destroyed from the last to the first: the library goes when nothing needs it.
struct Registration {
  std::shared_ptr<void> library;
  Plugin plugin;
  Status failure;
};

msrt_status Register(Registration* registration, const msrt_delegate_api* api, void* self) {
  try {
    if (api == nullptr) {
      registration->failure = InvalidArgument("register_delegate: api is NULL");
      return MSRT_INVALID_ARGUMENT;
    }
    std::vector<std::shared_ptr<const Delegate>>& delegates = registration->plugin.delegates;
    delegates.reserve(delegates.size() + 1);
    auto delegate = Delegate::Make(*api, self, registration->library);
    if (delegate.ok()) {
      (*delegate)->TakeOver();
      delegates.push_back(*std::move(delegate));
      return MSRT_OK;
    }
    registration->failure = std::move(delegate).status();
    return static_cast<msrt_status>(registration->failure.code());
  } catch (const std::bad_alloc&) {
    return MSRT_OUT_OF_MEMORY;
  }
}

Status RunEntry(const std::string& path, const std::string& options, Registration* registration) {
  const auto entry = reinterpret_cast<msrt_plugin_register_fn>(dlsym(registration->library.get(), MSRT_PLUGIN_ENTRY));
  if (entry == nullptr) return InvalidArgument("'", path, "' is no plugin of msrt: it does not export ", MSRT_PLUGIN_ENTRY);
  msrt_plugin_host host = MSRT_INIT(msrt_plugin_host);
  host.plugin_abi = MSRT_PLUGIN_ABI;
  host.host = registration;
  host.fail = [](void*, const char* message) { KeepFailure(message); };
  host.register_delegate = [](void* r, const msrt_delegate_api* api, void* self) {
    return Register(static_cast<Registration*>(r), api, self);
  };
  host.options = options.c_str();
  Status status = TakeFailure(entry(&host), path);
  if (!status.ok() && !registration->failure.ok()) status = registration->failure;
  return status.ok() ? status : std::move(status).Within(StrCat("plugin '", path, "'"));
}

}  // namespace

Result<Plugin> LoadPlugin(const std::string& path, const std::string& options) {
  Registration registration;
  MSRT_ASSIGN_OR_RETURN(registration.library, OpenLibrary(path));
  MSRT_RETURN_IF_ERROR(RunEntry(path, options, &registration));
  return std::move(registration.plugin);
}

Status AddDelegates(std::span<const std::shared_ptr<const Delegate>> added, std::vector<std::shared_ptr<const Delegate>>* registered) {
  std::vector<std::shared_ptr<const Delegate>> grown = *registered;
  for (const auto& delegate : added) {
    const auto same = [&](const auto& other) { return other->name() == delegate->name(); };
    if (std::any_of(grown.begin(), grown.end(), same)) return InvalidArgument("there is a delegate '", delegate->name(), "' already");
    grown.push_back(delegate);
  }
  *registered = std::move(grown);
  return OkStatus();
}

}  // namespace msrt
