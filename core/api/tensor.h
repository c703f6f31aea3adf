// A tensor of the C API: typed memory and its owner.
#pragma once

#include <memory>

#include "core/api/handles.h"
#include "core/compile/compile.h"
#include "core/graph/tensor.h"

namespace msrt {

struct TensorObject {
  // Destroyed last: the memory may come from its allocator.
  std::shared_ptr<const Environment> environment;
  TensorView view;  // plain layout, known dims, never null data
  std::shared_ptr<const void> owner;
  std::shared_ptr<const Device> device = nullptr;  // that the data is on; null: the host

  Type type() const { return Type::Tensor(view.dtype, view.dims); }
  size_t bytes() const { return BytesOf(view.dtype, view.elements()); }
};

// Uninitialised memory from the environment's allocator. The dims are known.
Result<std::shared_ptr<TensorObject>> NewTensor(std::shared_ptr<const Environment> environment,
                                                DType dtype, const Dims& dims,
                                                std::string_view what);
// The same with a copy of the data in `source`.
Result<std::shared_ptr<TensorObject>> CopyTensor(std::shared_ptr<const Environment> environment,
                                                 const TensorView& source, std::string_view what);
// A tensor over memory that `owner` keeps alive.
Result<std::shared_ptr<TensorObject>> TensorOver(std::shared_ptr<const Environment> environment,
                                                 DType dtype, const Dims& dims, void* data,
                                                 std::shared_ptr<const void> owner);
// Returns the tensor of a handle whose data the host reads: refuses one on a device.
Result<std::shared_ptr<TensorObject>> HostTensor(const msrt_tensor* handle,
                                                 std::string_view argument);
// Copies between host and devices, in any direction. Both have the same number of bytes.
Status CopyData(const TensorObject& from, const TensorObject& to);
// A copy that a graph may keep: in the environment's memory, sharing nothing with the tensor.
Result<ConstTensor> ConstantCopy(std::shared_ptr<const Environment> environment,
                                 const TensorObject& tensor);
// The tensor's data, shared. It must not change while it is used.
ConstTensor ConstantOver(const std::shared_ptr<TensorObject>& tensor);

}  // namespace msrt
