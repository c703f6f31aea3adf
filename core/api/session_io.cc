// Inputs and outputs of a session: their types, and the memory they are read from and written to.
#include "core/api/arguments.h"
#include "core/api/errors.h"
#include "core/api/list.h"
#include "core/api/session.h"
#include "core/api/tensor.h"

namespace msrt {
namespace {

std::string_view IoName(msrt_io kind) { return kind == MSRT_INPUT ? "input" : "output"; }

Result<std::span<const ValueId>> PortsOf(const SessionObject& session, msrt_io kind) {
  if (kind == MSRT_INPUT) return std::span<const ValueId>(session.graph().inputs);
  if (kind == MSRT_OUTPUT) return std::span<const ValueId>(session.graph().outputs);
  return InvalidArgument("kind is ", kind, ", must be MSRT_INPUT or MSRT_OUTPUT");
}

Result<ValueId> PortAt(const SessionObject& session, msrt_io kind, size_t index) {
  MSRT_ASSIGN_OR_RETURN(const std::span<const ValueId> ports, PortsOf(session, kind));
  MSRT_RETURN_IF_ERROR(CheckIndex(index, ports.size(), IoName(kind)));
  return ports[index];
}

// Checks everything but symbols, which only a run can compare between inputs.
Status CheckFits(const SessionObject& session, ValueId port, const Type& given,
                 std::string_view argument, msrt_io kind, size_t index) {
  const Value& declared = session.graph().value(port);
  auto merged = MergeTypes(declared.type, given);
  if (merged.ok()) return OkStatus();
  return InvalidArgument(argument, " is ", given, ", but ", IoName(kind), " ", index, " '",
                         declared.name, "' is ", declared.type, ": ", merged.status().message());
}

// The result of the last run, in the session's memory or where it was bound.
Result<std::shared_ptr<TensorObject>> OutputTensor(const SessionObject& session, size_t index) {
  MSRT_ASSIGN_OR_RETURN(const TensorView result, session.session->Output(index));
  MSRT_ASSIGN_OR_RETURN(std::shared_ptr<TensorObject> tensor,
                        TensorOver(session.session->model().environment, result.dtype, result.dims,
                                   result.data, session.session->OutputOwner(index)));
  MSRT_ASSIGN_OR_RETURN(const RunValue value, session.session->OutputValue(index));
  if (value.device != nullptr) tensor->device = value.device->shared_from_this();
  return tensor;
}

Status CheckKind(const SessionObject& session, ValueId port, TypeKind kind, msrt_io io,
                 size_t index) {
  const Value& declared = session.graph().value(port);
  if (declared.type.kind == kind) return OkStatus();
  const std::string_view tensor = io == MSRT_INPUT ? "msrt_session_bind" : "msrt_session_output";
  return InvalidArgument(IoName(io), " ", index, " '", declared.name, "' is ", declared.type,
                         ": use ", tensor, kind == TypeKind::kTensor ? "_list" : "");
}

}  // namespace
}  // namespace msrt

using namespace msrt;

msrt_status msrt_session_io_count(msrt_session* session, msrt_io kind, size_t* out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<SessionObject> object, EnterSession(session));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(const std::span<const ValueId> ports, PortsOf(*object, kind));
    *out = ports.size();
    return OkStatus();
  });
}

msrt_status msrt_session_io_info(msrt_session* session, msrt_io kind, size_t index,
                                 msrt_tensor_info* info) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<SessionObject> object, EnterSession(session));
    MSRT_ASSIGN_OR_RETURN(const ValueId port, PortAt(*object, kind, index));
    MSRT_RETURN_IF_ERROR(CheckStructSize(info, "info"));
    const Value& value = object->graph().value(port);
    Type type = value.type;
    if (kind == MSRT_OUTPUT) {
      auto result = object->session->Output(index);
      if (result.ok()) type = Type::Tensor(result->dtype, result->dims);
    }
    MSRT_ASSIGN_OR_RETURN(const msrt_tensor_info filled,
                          InfoOf(type, value.name.c_str(), object->module().symbols));
    WriteStruct(info, filled);
    return OkStatus();
  });
}

msrt_status msrt_session_io_find(msrt_session* session, msrt_io kind, const char* name,
                                 size_t* out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<SessionObject> object, EnterSession(session));
    MSRT_RETURN_IF_ERROR(NotNull(name, "name"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(const std::span<const ValueId> ports, PortsOf(*object, kind));
    std::vector<std::string> names;
    for (ValueId v : ports) names.push_back(object->graph().value(v).name);
    MSRT_ASSIGN_OR_RETURN(*out, FindName(names, name, IoName(kind)));
    return OkStatus();
  });
}

msrt_status msrt_session_bind(msrt_session* session, msrt_io kind, size_t index,
                              msrt_tensor* tensor) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<SessionObject> object, EnterSession(session));
    MSRT_ASSIGN_OR_RETURN(const ValueId port, PortAt(*object, kind, index));
    TensorView view;
    std::shared_ptr<TensorObject> owner;
    if (tensor != nullptr) {
      MSRT_ASSIGN_OR_RETURN(owner, ObjectOf<TensorObject>(tensor, "tensor"));
      MSRT_RETURN_IF_ERROR(CheckKind(*object, port, TypeKind::kTensor, kind, index));
      MSRT_RETURN_IF_ERROR(CheckFits(*object, port, owner->type(), "tensor", kind, index));
      view = owner->view;
    }
    const Device* const device = owner == nullptr ? nullptr : owner->device.get();
    if (kind == MSRT_OUTPUT)
      return object->session->SetOutput(index, view, std::move(owner), device);
    RunValue value = RunValue::Of(view, std::move(owner));
    value.device = device;
    return object->session->SetInput(index, std::move(value));
  });
}

msrt_status msrt_session_input(msrt_session* session, size_t index, int32_t rank,
                               const int64_t* dims, msrt_tensor** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<SessionObject> object, EnterSession(session));
    MSRT_ASSIGN_OR_RETURN(const ValueId port, PortAt(*object, MSRT_INPUT, index));
    MSRT_ASSIGN_OR_RETURN(const Dims checked, DimsArgument(rank, dims, ""));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    const Value& value = object->graph().value(port);
    MSRT_RETURN_IF_ERROR(CheckKind(*object, port, TypeKind::kTensor, MSRT_INPUT, index));
    MSRT_RETURN_IF_ERROR(CheckFits(*object, port, Type::Tensor(value.type.dtype, checked), "dims",
                                   MSRT_INPUT, index));
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<TensorObject> tensor,
                          NewTensor(object->session->model().environment, value.type.dtype, checked,
                                    StrCat("input '", value.name, "'")));
    msrt_tensor* handle = NewHandle(tensor);
    Status status = object->session->SetInput(index, tensor->view, tensor);
    if (!status.ok()) {
      DestroyHandle<TensorObject>(handle);
      return status;
    }
    *out = handle;
    return OkStatus();
  });
}

msrt_status msrt_session_output(msrt_session* session, size_t index, msrt_tensor** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<SessionObject> object, EnterSession(session));
    MSRT_ASSIGN_OR_RETURN(const ValueId port, PortAt(*object, MSRT_OUTPUT, index));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_RETURN_IF_ERROR(CheckKind(*object, port, TypeKind::kTensor, MSRT_OUTPUT, index));
    MSRT_ASSIGN_OR_RETURN(std::shared_ptr<TensorObject> tensor, OutputTensor(*object, index));
    *out = NewHandle(std::move(tensor));
    return OkStatus();
  });
}

msrt_status msrt_session_take_output(msrt_session* session, size_t index, msrt_tensor** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<SessionObject> object, EnterSession(session));
    MSRT_ASSIGN_OR_RETURN(const ValueId port, PortAt(*object, MSRT_OUTPUT, index));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_RETURN_IF_ERROR(CheckKind(*object, port, TypeKind::kTensor, MSRT_OUTPUT, index));
    MSRT_ASSIGN_OR_RETURN(const RunValue result, object->session->OutputValue(index));
    // Lasting memory may be shared with lists, which never change: the caller, who may write to the
    // tensor, gets a copy.
    MSRT_ASSIGN_OR_RETURN(std::shared_ptr<TensorObject> tensor,
                          result.lasting ? CopyTensor(object->session->model().environment,
                                                      result.tensor, "a copy of the output")
                                         : OutputTensor(*object, index));
    msrt_tensor* handle = NewHandle(std::move(tensor));
    object->session->ReleaseOutput(index);  // last: a failure above leaves the result where it is
    *out = handle;
    return OkStatus();
  });
}

msrt_status msrt_session_bind_list(msrt_session* session, size_t index, const msrt_list* list) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<SessionObject> object, EnterSession(session));
    MSRT_ASSIGN_OR_RETURN(const ValueId port, PortAt(*object, MSRT_INPUT, index));
    MSRT_RETURN_IF_ERROR(CheckKind(*object, port, TypeKind::kList, MSRT_INPUT, index));
    if (list == nullptr) return object->session->SetInput(index, RunValue());
    MSRT_ASSIGN_OR_RETURN(RunValue value, ListArgument(list, "list"));
    const Value& declared = object->graph().value(port);
    Status status = CheckListFits(declared.type, value, "list");
    if (!status.ok())
      return std::move(status).Within(StrCat("input ", index, " '", declared.name, "'"));
    return object->session->SetInput(index, std::move(value));
  });
}

msrt_status msrt_session_output_list(msrt_session* session, size_t index, msrt_list** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<SessionObject> object, EnterSession(session));
    MSRT_ASSIGN_OR_RETURN(const ValueId port, PortAt(*object, MSRT_OUTPUT, index));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_RETURN_IF_ERROR(CheckKind(*object, port, TypeKind::kList, MSRT_OUTPUT, index));
    const Value& declared = object->graph().value(port);
    MSRT_RETURN_IF_ERROR(
        InfoOf(declared.type, declared.name.c_str(), {}).status());  // refuses lists of functions
    MSRT_ASSIGN_OR_RETURN(const RunValue result, object->session->OutputValue(index));
    *out = PublishList(object->session->model().environment, result.list());
    return OkStatus();
  });
}
