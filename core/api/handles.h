// Handles: what the C API gives out instead of pointers. A handle is a slot of one table for the
// process and a generation that changes when the slot is used again, so a null, destroyed, foreign
// or confused handle is recognised and refused without being dereferenced. Looking one up shares
// the object: it lives until the call ends, whatever other threads destroy meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/abi/msrt.h"
#include "core/base/status.h"

namespace msrt {

enum class HandleKind : uint8_t { kNone, kRuntime, kModel, kSession, kTensor, kGraph, kList };

// Thread-safe, all three. A look-up writes to nothing that look-ups of other handles share.
uintptr_t InsertHandle(HandleKind kind, std::shared_ptr<void> object);
// `argument` names the handle in the message.
Result<std::shared_ptr<void>> FindHandle(uintptr_t handle, HandleKind kind,
                                         std::string_view argument);
// The object, to be released by the caller; null if the handle is none of that kind.
std::shared_ptr<void> RemoveHandle(uintptr_t handle, HandleKind kind) noexcept;

// What stands behind each type of the header.
class RuntimeObject;
struct ModelObject;
struct SessionObject;
struct TensorObject;
struct GraphObject;
struct ListObject;

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

// Releases the handle's share of the object; harmless for null and for what was destroyed before.
template <typename Object>
void DestroyHandle(const typename HandleOf<Object>::Type* handle) noexcept {
  RemoveHandle(reinterpret_cast<uintptr_t>(handle), HandleOf<Object>::kKind);
}

}  // namespace msrt
