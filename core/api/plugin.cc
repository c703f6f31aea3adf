// Registration of devices, delegates and kernels with a runtime, by the application or by a plugin.
#include "core/extend/plugin.h"

#include "core/api/arguments.h"
#include "core/api/errors.h"
#include "core/api/runtime.h"

using namespace msrt;

namespace {

// The services outlive the registered object, because the environment that owns them, or one
// extended from it, does.
CallbackServices CallbackServicesOf(const RuntimeObject& runtime) {
  const std::shared_ptr<const Environment> environment = runtime.environment();
  return {environment->allocator, environment->log};
}

}  // namespace

msrt_status msrt_runtime_register_device(msrt_runtime* runtime, const msrt_device_api* api,
                                         void* self) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<RuntimeObject> object,
                          ObjectOf<RuntimeObject>(runtime, "runtime"));
    MSRT_RETURN_IF_ERROR(NotNull(api, "api"));
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<const Device> device,
                          Device::Make(*api, self, nullptr));
    MSRT_RETURN_IF_ERROR(object->Add({.devices = {device}}));
    device->TakeOver();
    return OkStatus();
  });
}

msrt_status msrt_runtime_register_delegate(msrt_runtime* runtime, const msrt_delegate_api* api,
                                           void* self) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<RuntimeObject> object,
                          ObjectOf<RuntimeObject>(runtime, "runtime"));
    MSRT_RETURN_IF_ERROR(NotNull(api, "api"));
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<const Delegate> delegate,
                          Delegate::Make(*api, self, nullptr, object->environment()->devices));
    MSRT_RETURN_IF_ERROR(object->Add({.delegates = {delegate}}));
    delegate->TakeOver();
    return OkStatus();
  });
}

msrt_status msrt_runtime_register_kernel(msrt_runtime* runtime, const msrt_kernel_desc* kernel) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<RuntimeObject> object,
                          ObjectOf<RuntimeObject>(runtime, "runtime"));
    MSRT_RETURN_IF_ERROR(NotNull(kernel, "kernel"));
    MSRT_ASSIGN_OR_RETURN(const RegisteredKernel made,
                          RegisteredKernel::Make(*kernel, nullptr, CallbackServicesOf(*object)));
    MSRT_RETURN_IF_ERROR(object->Add({.kernels = {made}}));
    made.owner->TakeOver();
    return OkStatus();
  });
}

msrt_status msrt_runtime_load_plugin(msrt_runtime* runtime, const char* path, const char* options) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<RuntimeObject> object,
                          ObjectOf<RuntimeObject>(runtime, "runtime"));
    MSRT_RETURN_IF_ERROR(NotNull(path, "path"));
    MSRT_ASSIGN_OR_RETURN(const Registration plugin,
                          LoadPlugin(path, options == nullptr ? "" : options,
                                     CallbackServicesOf(*object), object->environment()->devices));
    return object->Add(plugin).Within(StrCat("plugin '", path, "'"));
  });
}
