#include "core/api/tensor.h"

#include <algorithm>
#include <cstring>

#include "core/api/arguments.h"
#include "core/api/errors.h"
#include "core/api/lease.h"
#include "core/api/runtime.h"

namespace msrt {
namespace {

// Data of an empty tensor for which the application passes null.
alignas(kTensorAlignment) std::byte no_bytes[kTensorAlignment];

void CopyBytes(void* to, const void* from, size_t bytes) {
  if (bytes != 0) std::memmove(to, from, bytes);
}

// A block and the environment whose allocator it came from.
struct OwnedBlock {
  std::shared_ptr<const Environment> environment;
  Block block;
};

}  // namespace

Result<std::shared_ptr<TensorObject>> NewTensor(std::shared_ptr<const Environment> environment,
                                                DType dtype, const Dims& dims,
                                                std::string_view what) {
  MSRT_ASSIGN_OR_RETURN(const size_t bytes, BytesArgument(dtype, dims));
  MSRT_ASSIGN_OR_RETURN(Block block, Block::Make(environment->allocator, bytes, what));
  auto owned = std::make_shared<Block>(std::move(block));
  auto tensor = std::make_shared<TensorObject>();
  tensor->environment = std::move(environment);
  tensor->view = {dtype, dims, Layout::kPlain, owned->data()};
  tensor->owner = std::move(owned);
  return tensor;
}

Result<std::shared_ptr<TensorObject>> CopyTensor(std::shared_ptr<const Environment> environment,
                                                 const TensorView& source, std::string_view what) {
  MSRT_ASSIGN_OR_RETURN(std::shared_ptr<TensorObject> copy,
                        NewTensor(std::move(environment), source.dtype, source.dims, what));
  CopyBytes(copy->view.data, source.data, copy->bytes());
  return copy;
}

Result<std::shared_ptr<TensorObject>> TensorOver(std::shared_ptr<const Environment> environment,
                                                 DType dtype, const Dims& dims, void* data,
                                                 std::shared_ptr<const void> owner) {
  MSRT_ASSIGN_OR_RETURN(const size_t bytes, BytesArgument(dtype, dims));
  if (bytes != 0) MSRT_RETURN_IF_ERROR(NotNull(data, "data"));
  const size_t element = static_cast<size_t>(std::max(BitsOf(dtype), 8)) / 8;
  if (reinterpret_cast<uintptr_t>(data) % element != 0) {
    return InvalidArgument("data begins at an address that is no multiple of ", element,
                           ", the bytes of an element of ", dtype);
  }
  auto tensor = std::make_shared<TensorObject>();
  tensor->environment = std::move(environment);
  tensor->view = {dtype, dims, Layout::kPlain, data == nullptr ? no_bytes : data};
  tensor->owner = std::move(owner);
  return tensor;
}

Result<ConstTensor> ConstantCopy(std::shared_ptr<const Environment> environment,
                                 const TensorObject& tensor) {
  MSRT_ASSIGN_OR_RETURN(Block block,
                        Block::Make(environment->allocator, tensor.bytes(), "a constant"));
  CopyBytes(block.data(), tensor.view.data, tensor.bytes());
  const std::span<const std::byte> bytes(block.data(), block.bytes());
  return ConstTensor{
      tensor.view.dtype, tensor.view.dims, bytes,
      std::make_shared<OwnedBlock>(OwnedBlock{std::move(environment), std::move(block)})};
}

ConstTensor ConstantOver(const std::shared_ptr<TensorObject>& tensor) {
  return {tensor->view.dtype,
          tensor->view.dims,
          {static_cast<const std::byte*>(tensor->view.data), tensor->bytes()},
          tensor};
}

Result<std::shared_ptr<TensorObject>> HostTensor(const msrt_tensor* handle,
                                                 std::string_view argument) {
  MSRT_ASSIGN_OR_RETURN(std::shared_ptr<TensorObject> tensor,
                        ObjectOf<TensorObject>(handle, argument));
  if (tensor->device == nullptr) return tensor;
  return InvalidArgument(argument, " is on device '", tensor->device->name(),
                         "'; copy it to the host first (msrt_tensor_copy)");
}

Status CopyData(const TensorObject& from, const TensorObject& to) {
  const size_t bytes = from.bytes();
  if (from.device == nullptr && to.device == nullptr) {
    CopyBytes(to.view.data, from.view.data, bytes);
    return OkStatus();
  }
  const Environment& env = *to.environment;
  const Host host(CallbackServices{env.allocator, env.log});
  const Device& by = to.device != nullptr ? *to.device : *from.device;
  MSRT_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, by.MakeStream(host));
  Status status;
  if (from.device == nullptr) {
    status = stream->CopyToDevice(host, to.view.data, from.view.data, bytes);
  } else if (to.device == nullptr) {
    status = stream->CopyToHost(host, to.view.data, from.view.data, bytes);
  } else if (by.Reaches(*from.device)) {
    status = stream->CopyPeer(host, to.view.data, *from.device, from.view.data, bytes);
  } else {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<TensorObject> between,
                          NewTensor(to.environment, from.view.dtype, from.view.dims, "a copy"));
    MSRT_RETURN_IF_ERROR(CopyData(from, *between));
    return CopyData(*between, to);
  }
  Status done = stream->Synchronize(host);
  return status.ok() ? done : status;
}

}  // namespace msrt

using namespace msrt;

msrt_status msrt_tensor_create(msrt_runtime* runtime, msrt_dtype dtype, int32_t rank,
                               const int64_t* dims, msrt_tensor** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<RuntimeObject> owner,
                          ObjectOf<RuntimeObject>(runtime, "runtime"));
    MSRT_ASSIGN_OR_RETURN(const DType type, DTypeArgument(dtype, "dtype"));
    MSRT_ASSIGN_OR_RETURN(const Dims checked, DimsArgument(rank, dims, ""));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(std::shared_ptr<TensorObject> tensor,
                          NewTensor(owner->environment(), type, checked, "a tensor"));
    *out = NewHandle(std::move(tensor));
    return OkStatus();
  });
}

msrt_status msrt_tensor_wrap(msrt_runtime* runtime, msrt_dtype dtype, int32_t rank,
                             const int64_t* dims, void* data, size_t bytes,
                             void (*free_fn)(void* user, void* data), void* user,
                             msrt_tensor** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<RuntimeObject> owner,
                          ObjectOf<RuntimeObject>(runtime, "runtime"));
    MSRT_ASSIGN_OR_RETURN(const DType type, DTypeArgument(dtype, "dtype"));
    MSRT_ASSIGN_OR_RETURN(const Dims checked, DimsArgument(rank, dims, ""));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(const size_t needed, BytesArgument(type, checked));
    if (bytes < needed)
      return InvalidArgument("bytes is ", bytes, ", but ", type, checked, " needs ", needed);
    auto lease = MakeLease([free_fn, user, data] {
      if (free_fn != nullptr) free_fn(user, data);
    });
    MSRT_ASSIGN_OR_RETURN(std::shared_ptr<TensorObject> tensor,
                          TensorOver(owner->environment(), type, checked, data, lease));
    msrt_tensor* handle = NewHandle(std::move(tensor));
    lease->Accept();
    *out = handle;
    return OkStatus();
  });
}

msrt_status msrt_tensor_get_info(const msrt_tensor* tensor, msrt_tensor_info* info) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<TensorObject> object,
                          ObjectOf<TensorObject>(tensor, "tensor"));
    MSRT_RETURN_IF_ERROR(CheckStructSize(info, "info"));
    MSRT_ASSIGN_OR_RETURN(const msrt_tensor_info filled, InfoOf(object->type(), nullptr, {}));
    WriteStruct(info, filled);
    return OkStatus();
  });
}

msrt_status msrt_tensor_data(msrt_tensor* tensor, void** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<TensorObject> object,
                          ObjectOf<TensorObject>(tensor, "tensor"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    *out = object->view.data;
    return OkStatus();
  });
}

msrt_status msrt_tensor_copy(msrt_tensor* destination, const msrt_tensor* source) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<TensorObject> to,
                          ObjectOf<TensorObject>(destination, "destination"));
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<TensorObject> from,
                          ObjectOf<TensorObject>(source, "source"));
    if (to->view.dtype != from->view.dtype || to->view.elements() != from->view.elements()) {
      return InvalidArgument("source is ", from->type(), ", destination is ", to->type(),
                             ": they must have one element type and as many elements");
    }
    return CopyData(*from, *to);
  });
}

void msrt_tensor_destroy(msrt_tensor* tensor) { DestroyHandle<TensorObject>(tensor); }
