#include "core/extend/plugin.h"

#include <dlfcn.h>

#include <algorithm>

#include "core/delegate/boundary.h"

namespace msrt {
namespace {

// Returns the handle of a shared library, which is unloaded with its last owner.
Result<std::shared_ptr<void>> OpenLibrary(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return NotFound("plugin '", path,
                    "' cannot be loaded: ", why == nullptr ? "no reason given" : why);
  }
  return std::shared_ptr<void>(handle, [](void* h) { dlclose(h); });
}

// A plugin while its entry function runs. Members are destroyed in reverse order, so the library is
// unloaded last.
struct PluginLoad {
  std::shared_ptr<void> library;
  Registration registration;
  const CallbackServices& services;
  std::vector<std::shared_ptr<const Device>> devices;  // known before, and those it registers
  std::string refused = {};                            // the reason of the last failed registration
};

// Runs a registration and records the reason if it fails.
template <typename Body>
msrt_status TryRegister(PluginLoad* load, const Body& body) noexcept {
  return ToStatusCode([&]() -> Status {
    Status status = body();
    if (!status.ok()) load->refused = status.message();
    return status;
  });
}

Status RegisterDevice(PluginLoad* load, const msrt_device_api* api, void* self) {
  if (api == nullptr) return InvalidArgument("register_device: api is NULL");
  auto& devices = load->registration.devices;
  devices.reserve(devices.size() + 1);
  load->devices.reserve(load->devices.size() + 1);
  MSRT_ASSIGN_OR_RETURN(std::shared_ptr<const Device> device,
                        Device::Make(*api, self, load->library));
  device->TakeOver();
  load->devices.push_back(device);
  devices.push_back(std::move(device));
  return OkStatus();
}

Status RegisterDelegate(PluginLoad* load, const msrt_delegate_api* api, void* self) {
  if (api == nullptr) return InvalidArgument("register_delegate: api is NULL");
  auto& delegates = load->registration.delegates;
  delegates.reserve(delegates.size() + 1);
  MSRT_ASSIGN_OR_RETURN(std::shared_ptr<const Delegate> delegate,
                        Delegate::Make(*api, self, load->library, load->devices));
  delegate->TakeOver();
  delegates.push_back(std::move(delegate));
  return OkStatus();
}

Status RegisterKernel(PluginLoad* load, const msrt_kernel_desc* desc) {
  if (desc == nullptr) return InvalidArgument("register_kernel: kernel is NULL");
  auto& kernels = load->registration.kernels;
  kernels.reserve(kernels.size() + 1);
  MSRT_ASSIGN_OR_RETURN(RegisteredKernel kernel,
                        RegisteredKernel::Make(*desc, load->library, load->services));
  kernel.owner->TakeOver();
  kernels.push_back(std::move(kernel));
  return OkStatus();
}

Status RegisterPass(PluginLoad* load, const msrt_pass_desc* desc) {
  if (desc == nullptr) return InvalidArgument("register_pass: pass is NULL");
  MSRT_ASSIGN_OR_RETURN(AddedPass pass, MakeAddedPass(*desc, load->library, load->services));
  load->registration.passes.push_back(std::move(pass));
  return OkStatus();
}

Status RegisterImporter(PluginLoad* load, const msrt_importer_desc* desc) {
  if (desc == nullptr) return InvalidArgument("register_importer: importer is NULL");
  MSRT_ASSIGN_OR_RETURN(RegisteredImporter importer,
                        RegisteredImporter::Make(*desc, load->library, load->services));
  load->registration.importers.push_back(std::move(importer));
  return OkStatus();
}

Status RunEntry(const std::string& path, const std::string& options, PluginLoad* load) {
  const auto entry =
      reinterpret_cast<msrt_plugin_register_fn>(dlsym(load->library.get(), MSRT_PLUGIN_ENTRY));
  if (entry == nullptr)
    return InvalidArgument("'", path, "' is not an msrt plugin: it does not export ",
                           MSRT_PLUGIN_ENTRY);
  msrt_plugin_host host = MSRT_INIT(msrt_plugin_host);
  host.plugin_abi = MSRT_PLUGIN_ABI;
  host.host = load;
  host.fail = [](void*, const char* message) { SetFailureText(message); };
  host.register_delegate = [](void* l, const msrt_delegate_api* api, void* self) {
    return TryRegister(static_cast<PluginLoad*>(l),
                       [&] { return RegisterDelegate(static_cast<PluginLoad*>(l), api, self); });
  };
  host.register_device = [](void* l, const msrt_device_api* api, void* self) {
    return TryRegister(static_cast<PluginLoad*>(l),
                       [&] { return RegisterDevice(static_cast<PluginLoad*>(l), api, self); });
  };
  host.register_kernel = [](void* l, const msrt_kernel_desc* desc) {
    return TryRegister(static_cast<PluginLoad*>(l),
                       [&] { return RegisterKernel(static_cast<PluginLoad*>(l), desc); });
  };
  host.register_pass = [](void* l, const msrt_pass_desc* desc) {
    return TryRegister(static_cast<PluginLoad*>(l),
                       [&] { return RegisterPass(static_cast<PluginLoad*>(l), desc); });
  };
  host.register_importer = [](void* l, const msrt_importer_desc* desc) {
    return TryRegister(static_cast<PluginLoad*>(l),
                       [&] { return RegisterImporter(static_cast<PluginLoad*>(l), desc); });
  };
  host.options = options.c_str();
  Status status = CallCallback([&] { return entry(&host); });
  if (status.ok()) return status;
  // The plugin's own message comes first: the refused registration may have been optional.
  const bool more = !load->refused.empty() && load->refused != status.message();
  if (more)
    status = MakeStatus(status.code(), status.message(),
                        " (a registration was refused before: ", load->refused, ")");
  return std::move(status).Within(StrCat("plugin '", path, "'"));
}

template <typename Object>
Status AddNamed(std::string_view kind, std::span<const std::shared_ptr<const Object>> added,
                std::vector<std::shared_ptr<const Object>>* registered) {
  std::vector<std::shared_ptr<const Object>> grown = *registered;
  for (const auto& object : added) {
    const auto same = [&](const auto& other) { return other->name() == object->name(); };
    if (std::any_of(grown.begin(), grown.end(), same))
      return InvalidArgument("there is a ", kind, " '", object->name(), "' already");
    grown.push_back(object);
  }
  *registered = std::move(grown);
  return OkStatus();
}

}  // namespace

Result<Registration> LoadPlugin(const std::string& path, const std::string& options,
                                const CallbackServices& services,
                                std::span<const std::shared_ptr<const Device>> devices) {
  MSRT_ASSIGN_OR_RETURN(std::shared_ptr<void> library, OpenLibrary(path));
  PluginLoad load{std::move(library), {}, services, {devices.begin(), devices.end()}};
  MSRT_RETURN_IF_ERROR(RunEntry(path, options, &load));
  return std::move(load.registration);
}

Status AddDevices(std::span<const std::shared_ptr<const Device>> added,
                  std::vector<std::shared_ptr<const Device>>* registered) {
  return AddNamed("device", added, registered);
}

Status AddDelegates(std::span<const std::shared_ptr<const Delegate>> added,
                    std::vector<std::shared_ptr<const Delegate>>* registered) {
  return AddNamed("delegate", added, registered);
}

}  // namespace msrt
