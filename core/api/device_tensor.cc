// Tensors in the memory of devices.
#include "core/api/arguments.h"
#include "core/api/errors.h"
#include "core/api/lease.h"
#include "core/api/runtime.h"
#include "core/api/tensor.h"

namespace msrt {
namespace {

// Memory of a device with what it needs to be freed.
struct OwnedDeviceBlock {
  std::shared_ptr<const Environment> environment;
  DeviceBlock block;
};

Result<std::shared_ptr<const Device>> FindDevice(const Environment& environment, const char* name) {
  MSRT_RETURN_IF_ERROR(NotNull(name, "device"));
  std::string known;
  for (const auto& device : environment.devices) {
    if (device->name() == name) return device;
    StrAppend(&known, known.empty() ? "" : ", ", device->name());
  }
  return NotFound("there is no device '", name, "'; this runtime has ",
                  known.empty() ? "none" : known);
}

}  // namespace
}  // namespace msrt

using namespace msrt;

msrt_status msrt_tensor_create_on_device(msrt_runtime* runtime, const char* device,
                                         msrt_dtype dtype, int32_t rank, const int64_t* dims,
                                         msrt_tensor** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<RuntimeObject> owner,
                          ObjectOf<RuntimeObject>(runtime, "runtime"));
    const std::shared_ptr<const Environment> env = owner->environment();
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<const Device> there, FindDevice(*env, device));
    MSRT_ASSIGN_OR_RETURN(const DType type, DTypeArgument(dtype, "dtype"));
    MSRT_ASSIGN_OR_RETURN(const Dims checked, DimsArgument(rank, dims, ""));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(const size_t bytes, BytesArgument(type, checked));
    const Host host(CallbackServices{env->allocator, env->log});
    MSRT_ASSIGN_OR_RETURN(DeviceBlock block, there->Allocate(host, bytes, "a tensor"));
    auto owned = std::make_shared<OwnedDeviceBlock>(OwnedDeviceBlock{env, std::move(block)});
    auto tensor = std::make_shared<TensorObject>();
    tensor->environment = env;
    tensor->view = {type, checked, Layout::kPlain, owned->block.data()};
    tensor->owner = std::move(owned);
    tensor->device = there;
    *out = NewHandle(std::move(tensor));
    return OkStatus();
  });
}

msrt_status msrt_tensor_wrap_on_device(msrt_runtime* runtime, const char* device, msrt_dtype dtype,
                                       int32_t rank, const int64_t* dims, void* data, size_t bytes,
                                       void (*free_fn)(void* user, void* data), void* user,
                                       msrt_tensor** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<RuntimeObject> owner,
                          ObjectOf<RuntimeObject>(runtime, "runtime"));
    const std::shared_ptr<const Environment> env = owner->environment();
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<const Device> there, FindDevice(*env, device));
    MSRT_ASSIGN_OR_RETURN(const DType type, DTypeArgument(dtype, "dtype"));
    MSRT_ASSIGN_OR_RETURN(const Dims checked, DimsArgument(rank, dims, ""));
    MSRT_RETURN_IF_ERROR(NotNull(data, "data"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(const size_t needed, BytesArgument(type, checked));
    if (bytes < needed)
      return InvalidArgument("bytes is ", bytes, ", but ", type, checked, " needs ", needed);
    auto lease = MakeLease([free_fn, user, data] {
      if (free_fn != nullptr) free_fn(user, data);
    });
    MSRT_ASSIGN_OR_RETURN(std::shared_ptr<TensorObject> tensor,
                          TensorOver(env, type, checked, data, lease));
    tensor->device = there;
    msrt_tensor* handle = NewHandle(std::move(tensor));
    lease->Accept();
    *out = handle;
    return OkStatus();
  });
}

msrt_status msrt_tensor_device(const msrt_tensor* tensor, const char** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<TensorObject> object,
                          ObjectOf<TensorObject>(tensor, "tensor"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    *out = object->device == nullptr ? nullptr : object->device->name().c_str();
    return OkStatus();
  });
}
