// Delegates that an application registers, itself or in a plugin.
#include <dlfcn.h>

#include "core/api/arguments.h"
#include "core/api/errors.h"
#include "core/api/msrt_plugin.h"
#include "core/api/runtime.h"

namespace msrt {
namespace {

// A shared library, loaded as long as anything of it is in use.
Result<std::shared_ptr<void>> OpenLibrary(const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return NotFound("plugin '", path, "' cannot be loaded: ", why == nullptr ? "no reason given" : why);
  }
  return std::shared_ptr<void>(handle, [](void* h) { dlclose(h); });
}

// What a plugin registers while its entry runs; the runtime gets it when that succeeded.
struct Registration {
  std::shared_ptr<void> library;
  std::vector<std::shared_ptr<const Delegate>> delegates;
  Status failure;
};

msrt_status Register(Registration* registration, const msrt_delegate_api* api, void* self) {
  try {
    Status status = NotNull(api, "api");
    if (status.ok()) {
      registration->delegates.reserve(registration->delegates.size() + 1);
      auto delegate = Delegate::Make(*api, self, registration->library);
      if (delegate.ok()) {
        (*delegate)->TakeOver();
        registration->delegates.push_back(*std::move(delegate));
        return MSRT_OK;
      }
      status = std::move(delegate).status();
    }
    registration->failure = status;
    return static_cast<msrt_status>(status.code());
  } catch (const std::bad_alloc&) {
    return MSRT_OUT_OF_MEMORY;
  }
}

Status RunEntry(const char* path, const char* options, Registration* registration) {
  const auto entry = reinterpret_cast<msrt_plugin_register_fn>(dlsym(registration->library.get(), MSRT_PLUGIN_ENTRY));
  if (entry == nullptr) return InvalidArgument("'", path, "' is no plugin of msrt: it does not export ", MSRT_PLUGIN_ENTRY);
  msrt_plugin_host host = MSRT_INIT(msrt_plugin_host);
  host.plugin_abi = MSRT_PLUGIN_ABI;
  host.host = registration;
  host.fail = [](void*, const char* message) { KeepFailure(message); };
  host.register_delegate = [](void* r, const msrt_delegate_api* api, void* self) {
    return Register(static_cast<Registration*>(r), api, self);
  };
  host.options = options == nullptr ? "" : options;
  Status status = TakeFailure(entry(&host), path);
  if (!status.ok() && !registration->failure.ok()) status = registration->failure;
  return status.ok() ? status : std::move(status).Within(StrCat("plugin '", path, "'"));
}

}  // namespace
}  // namespace msrt

using namespace msrt;

msrt_status msrt_runtime_register_delegate(msrt_runtime* runtime, const msrt_delegate_api* api, void* self) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<RuntimeObject> object, ObjectOf<RuntimeObject>(runtime, "runtime"));
    MSRT_RETURN_IF_ERROR(NotNull(api, "api"));
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<const Delegate> delegate, Delegate::Make(*api, self, nullptr));
    MSRT_RETURN_IF_ERROR(object->AddDelegates({&delegate, 1}));
    delegate->TakeOver();
    return OkStatus();
  });
}

msrt_status msrt_runtime_load_plugin(msrt_runtime* runtime, const char* path, const char* options) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<RuntimeObject> object, ObjectOf<RuntimeObject>(runtime, "runtime"));
    MSRT_RETURN_IF_ERROR(NotNull(path, "path"));
    Registration registration;
    MSRT_ASSIGN_OR_RETURN(registration.library, OpenLibrary(path));
    MSRT_RETURN_IF_ERROR(RunEntry(path, options, &registration));
    return object->AddDelegates(registration.delegates);
  });
}
