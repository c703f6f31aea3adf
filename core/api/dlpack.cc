// DLPack: tensors exchanged with other frameworks without a copy. The structs are those of DLPack
// 0.8's ABI.
#include <cstdint>

#include "core/api/arguments.h"
#include "core/api/errors.h"
#include "core/api/lease.h"
#include "core/api/runtime.h"
#include "core/api/tensor.h"

namespace msrt {
namespace {

constexpr int32_t kDlCpu = 1;
enum DlCode : uint8_t { kDlInt = 0, kDlUInt = 1, kDlFloat = 2, kDlBfloat = 4, kDlBool = 6 };

struct DlDevice {
  int32_t type, id;
};
struct DlDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  int32_t rank;
  DlDataType dtype;
  int64_t* dims;
  int64_t* strides;  // in elements; null: row-major
  uint64_t byte_offset;
};
struct DlManagedTensor {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManagedTensor* self);
};

struct TypePair {
  DType ours;
  uint8_t code, bits;
};
constexpr TypePair kTypes[] = {
    {DType::kF64, kDlFloat, 64},   {DType::kF32, kDlFloat, 32}, {DType::kF16, kDlFloat, 16},
    {DType::kBF16, kDlBfloat, 16}, {DType::kI8, kDlInt, 8},     {DType::kI16, kDlInt, 16},
    {DType::kI32, kDlInt, 32},     {DType::kI64, kDlInt, 64},   {DType::kU8, kDlUInt, 8},
    {DType::kU16, kDlUInt, 16},    {DType::kU32, kDlUInt, 32},  {DType::kU64, kDlUInt, 64},
    {DType::kBool, kDlBool, 8},
};

Result<DType> FromDlType(DlDataType type) {
  if (type.lanes == 1) {
    for (const TypePair& pair : kTypes) {
      if (pair.code == type.code && pair.bits == type.bits) return pair.ours;
    }
  }
  return Unsupported("managed_tensor: its DLPack type (code ", int{type.code}, ", ", int{type.bits},
                     " bits, ", int{type.lanes}, " lanes) is not an element type of msrt");
}

Result<DlDataType> ToDlType(DType type) {
  for (const TypePair& pair : kTypes) {
    if (pair.ours == type) return DlDataType{pair.code, pair.bits, 1};
  }
  return Unsupported("tensor: DLPack 0.8 has no type for ", type);
}

// Strides of a dim of extent 1 and of an empty tensor are ignored.
Status CheckContiguous(const Dims& dims, const int64_t* strides) {
  if (strides == nullptr || dims.elements() == 0) return OkStatus();
  int64_t step = 1;
  for (int i = dims.rank() - 1; i >= 0; --i) {
    if (dims[i] != 1 && strides[i] != step) {
      return Unsupported("managed_tensor: stride ", i, " is ", strides[i], ", but ", step,
                         " for a row-major tensor of dims ", dims, ": make it contiguous first");
    }
    step *= dims[i];
  }
  return OkStatus();
}

// Returns the device registered with this DLPack type and number; null for the CPU.
Result<std::shared_ptr<const Device>> FindDlDevice(const Environment& environment,
                                                   DlDevice wanted) {
  if (wanted.type == kDlCpu) return std::shared_ptr<const Device>();
  for (const auto& device : environment.devices) {
    if (device->dlpack_type() == wanted.type && device->dlpack_id() == wanted.id) return device;
  }
  return Unsupported("managed_tensor is on device ", wanted.id, " of DLPack type ", wanted.type,
                     ", which is not registered with this runtime: copy it to the CPU (1)");
}

// The object behind the result of to_dlpack: keeps the tensor alive until the consumer calls the
// deleter.
struct ExportedTensor {
  DlManagedTensor managed{};
  std::shared_ptr<TensorObject> tensor;
  Dims dims, strides;

  static void Delete(DlManagedTensor* self) { delete static_cast<ExportedTensor*>(self->context); }
};

}  // namespace
}  // namespace msrt

using namespace msrt;

msrt_status msrt_tensor_from_dlpack(msrt_runtime* runtime, void* managed_tensor,
                                    msrt_tensor** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<RuntimeObject> owner,
                          ObjectOf<RuntimeObject>(runtime, "runtime"));
    MSRT_RETURN_IF_ERROR(NotNull(managed_tensor, "managed_tensor"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    auto* managed = static_cast<DlManagedTensor*>(managed_tensor);
    const DlTensor& given = managed->tensor;
    const std::shared_ptr<const Environment> env = owner->environment();
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<const Device> device,
                          FindDlDevice(*env, given.device));
    MSRT_ASSIGN_OR_RETURN(const DType dtype, FromDlType(given.dtype));
    MSRT_ASSIGN_OR_RETURN(const Dims dims, DimsArgument(given.rank, given.dims, "managed_tensor."));
    MSRT_RETURN_IF_ERROR(BytesArgument(dtype, dims).status());
    MSRT_RETURN_IF_ERROR(CheckContiguous(dims, given.strides));
    void* data =
        given.data == nullptr ? nullptr : static_cast<std::byte*>(given.data) + given.byte_offset;
    auto lease = MakeLease([managed] {
      if (managed->deleter != nullptr) managed->deleter(managed);
    });
    auto tensor = TensorOver(env, dtype, dims, data, lease);
    if (!tensor.ok()) return std::move(tensor).status().Within("managed_tensor");
    (*tensor)->device = device;
    msrt_tensor* handle = NewHandle(*std::move(tensor));
    lease->Accept();
    *out = handle;
    return OkStatus();
  });
}

msrt_status msrt_tensor_to_dlpack(msrt_tensor* tensor, void** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(std::shared_ptr<TensorObject> object,
                          ObjectOf<TensorObject>(tensor, "tensor"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(const DlDataType dtype, ToDlType(object->view.dtype));
    DlDevice device{kDlCpu, 0};
    if (object->device != nullptr) {
      device = {object->device->dlpack_type(), object->device->dlpack_id()};
      if (device.type == 0)
        return Unsupported("tensor is on device '", object->device->name(),
                           "', which has no DLPack type");
    }
    auto exported = std::make_unique<ExportedTensor>();
    exported->dims = object->view.dims;
    exported->strides = RowMajorStrides(object->view.dims);
    exported->managed.tensor = {
        object->view.data,         device, object->view.dims.rank(), dtype, exported->dims.begin(),
        exported->strides.begin(), 0};
    exported->managed.context = exported.get();
    exported->managed.deleter = &ExportedTensor::Delete;
    exported->tensor = std::move(object);
    *out = &exported.release()->managed;
    return OkStatus();
  });
}
