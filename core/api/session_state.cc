// The state of a session: named tensors that outlive its runs.
#include "core/api/arguments.h"
#include "core/api/errors.h"
#include "core/api/session.h"
#include "core/api/tensor.h"

using namespace msrt;

msrt_status msrt_session_state_count(msrt_session* session, size_t* out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<SessionObject> object, EnterSession(session));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    *out = object->module().states.size();
    return OkStatus();
  });
}

msrt_status msrt_session_state_find(msrt_session* session, const char* name, size_t* out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<SessionObject> object, EnterSession(session));
    MSRT_RETURN_IF_ERROR(NotNull(name, "name"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    std::vector<std::string> names;
    for (const StateSlot& s : object->module().states) names.push_back(s.name);
    MSRT_ASSIGN_OR_RETURN(*out, FindName(names, name, "state"));
    return OkStatus();
  });
}

msrt_status msrt_session_state_info(msrt_session* session, size_t index, msrt_tensor_info* info) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<SessionObject> object, EnterSession(session));
    MSRT_RETURN_IF_ERROR(CheckIndex(index, object->module().states.size(), "state"));
    MSRT_RETURN_IF_ERROR(CheckStructSize(info, "info"));
    const StateSlot& slot = object->module().states[index];
    MSRT_ASSIGN_OR_RETURN(msrt_tensor_info filled,
                          InfoOf(slot.type, slot.name.c_str(), object->module().symbols));
    filled.state_role = static_cast<msrt_state_role>(slot.role);
    WriteStruct(info, filled);
    return OkStatus();
  });
}

msrt_status msrt_session_state_read(msrt_session* session, size_t index, msrt_tensor** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<SessionObject> object, EnterSession(session));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    return object->session->ReadState(index, [&](const TensorView& value) -> Status {
      MSRT_ASSIGN_OR_RETURN(
          std::shared_ptr<TensorObject> copy,
          CopyTensor(object->session->model().environment, value, "a copy of the state"));
      *out = NewHandle(std::move(copy));
      return OkStatus();
    });
  });
}

msrt_status msrt_session_state_write(msrt_session* session, size_t index,
                                     const msrt_tensor* value) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<SessionObject> object, EnterSession(session));
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<TensorObject> tensor, HostTensor(value, "value"));
    return object->session->WriteState(index, tensor->view);
  });
}

msrt_status msrt_session_state_reset(msrt_session* session, size_t index) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<SessionObject> object, EnterSession(session));
    return object->session->ResetState(index);
  });
}

msrt_status msrt_session_state_copy(msrt_session* session, msrt_session* from) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<SessionObject> object, EnterSession(session));
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<SessionObject> source,
                          ObjectOf<SessionObject>(from, "from"));
    if (source->session == object->session) return OkStatus();
    MSRT_ASSIGN_OR_RETURN(const Exclusive<SessionObject> entered,
                          Exclusive<SessionObject>::Enter(from, "from"));
    return object->session->CopyState(*entered->session);
  });
}
