// Handles: the C API returns them instead of pointers. A handle is a slot in one table of the
// process and a generation, which changes when the slot is reused, so a handle that is null,
// destroyed, of another kind or not of msrt is refused without being dereferenced. A look-up shares
// the object: it lives until the call ends, whatever other threads destroy meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/abi/msrt_train.h"
#include "core/base/status.h"

namespace msrt {

enum class HandleKind : uint8_t {
  kNone,
  kRuntime,
  kModel,
  kSession,
  kTensor,
  kGraph,
  kList,
  kImage,
  kDataset,
  kTrainer
};

// All three functions are thread-safe. A look-up writes to no memory that look-ups of other handles
// use.
uintptr_t InsertHandle(HandleKind kind, std::shared_ptr<void> object);
// `argument` names the handle in the message.
Result<std::shared_ptr<void>> FindHandle(uintptr_t handle, HandleKind kind,
                                         std::string_view argument);
// Returns the object, for the caller to release; null if this is not a handle of that kind.
std::shared_ptr<void> RemoveHandle(uintptr_t handle, HandleKind kind) noexcept;

// The object behind each handle type of msrt.h and msrt_train.h.
class RuntimeObject;
struct ModelObject;
struct SessionObject;
struct TensorObject;
struct GraphObject;
struct ListObject;
struct ImageObject;
struct DatasetObject;
struct TrainerObject;

template <typename Object>
struct HandleOf;
template <>
struct HandleOf<RuntimeObject> {
  using Type = msrt_runtime;
  static constexpr HandleKind kKind = HandleKind::kRuntime;
};
template <>
struct HandleOf<ModelObject> {
  using Type = msrt_model;
  static constexpr HandleKind kKind = HandleKind::kModel;
};
template <>
struct HandleOf<SessionObject> {
  using Type = msrt_session;
  static constexpr HandleKind kKind = HandleKind::kSession;
};
template <>
struct HandleOf<TensorObject> {
  using Type = msrt_tensor;
  static constexpr HandleKind kKind = HandleKind::kTensor;
};
template <>
struct HandleOf<GraphObject> {
  using Type = msrt_graph;
  static constexpr HandleKind kKind = HandleKind::kGraph;
};
template <>
struct HandleOf<ListObject> {
  using Type = msrt_list;
  static constexpr HandleKind kKind = HandleKind::kList;
};
template <>
struct HandleOf<ImageObject> {
  using Type = msrt_image;
  static constexpr HandleKind kKind = HandleKind::kImage;
};
template <>
struct HandleOf<DatasetObject> {
  using Type = msrt_dataset;
  static constexpr HandleKind kKind = HandleKind::kDataset;
};
template <>
struct HandleOf<TrainerObject> {
  using Type = msrt_trainer;
  static constexpr HandleKind kKind = HandleKind::kTrainer;
};

template <typename Object>
typename HandleOf<Object>::Type* NewHandle(std::shared_ptr<Object> object) {
  return reinterpret_cast<typename HandleOf<Object>::Type*>(
      InsertHandle(HandleOf<Object>::kKind, std::move(object)));
}

template <typename Object>
Result<std::shared_ptr<Object>> ObjectOf(const typename HandleOf<Object>::Type* handle,
                                         std::string_view argument) {
  MSRT_ASSIGN_OR_RETURN(
      std::shared_ptr<void> object,
      FindHandle(reinterpret_cast<uintptr_t>(handle), HandleOf<Object>::kKind, argument));
  return std::static_pointer_cast<Object>(std::move(object));
}

// Releases the handle's share of the object; does nothing for a null or destroyed handle.
template <typename Object>
void DestroyHandle(const typename HandleOf<Object>::Type* handle) noexcept {
  RemoveHandle(reinterpret_cast<uintptr_t>(handle), HandleOf<Object>::kKind);
}

}  // namespace msrt
