#include "core/api/list.h"

#include <algorithm>

#include "core/api/arguments.h"
#include "core/api/errors.h"
#include "core/api/exclusive.h"
#include "core/api/runtime.h"
#include "core/api/tensor.h"

namespace msrt {
namespace {

// Deeper than any useful type. Lists are checked and freed by recursion, so depth needs a limit.
constexpr int kMaxListDepth = 8;

std::string_view KindOf(const RunValue& value) {
  return value.kind == TypeKind::kTensor ? "a tensor" : "a list";
}

// A value that owns the tensor and never changes.
RunValue LastingValue(std::shared_ptr<TensorObject> tensor) {
  const TensorView view = tensor->view;
  RunValue value = RunValue::Of(view, std::move(tensor));
  value.lasting = true;
  return value;
}

// The same elements, each of which also owns the environment whose allocator its memory came from.
ListValue WithEnvironment(const std::shared_ptr<const Environment>& environment,
                          const ListValue& list) {
  ListValue result;
  for (const RunValue& e : list.elements) {
    if (e.kind == TypeKind::kList) {
      result.elements.push_back(
          RunValue::Of(std::make_shared<const ListValue>(WithEnvironment(environment, e.list()))));
      continue;
    }
    auto tensor = std::make_shared<TensorObject>();
    tensor->environment = environment;
    tensor->view = e.tensor;
    tensor->owner = e.owner;
    result.elements.push_back(LastingValue(std::move(tensor)));
  }
  return result;
}

int DepthOf(const ListValue& list) {
  int deepest = 0;
  for (const RunValue& e : list.elements)
    deepest = std::max(deepest, e.kind == TypeKind::kList ? DepthOf(e.list()) : 0);
  return deepest + 1;
}

Result<RunValue> ElementAt(const msrt_list* list, size_t index, TypeKind kind) {
  MSRT_ASSIGN_OR_RETURN(const Exclusive<ListObject> object,
                        Exclusive<ListObject>::Enter(list, "list"));
  MSRT_RETURN_IF_ERROR(CheckIndex(index, object->elements.size(), "element"));
  const RunValue& element = object->elements[index];
  if (element.kind == kind) return element;
  return InvalidArgument(
      "element ", index, " is ", KindOf(element), ": use ",
      kind == TypeKind::kTensor ? "msrt_list_element_list" : "msrt_list_element");
}

}  // namespace

Result<RunValue> ListArgument(const msrt_list* list, std::string_view argument) {
  MSRT_ASSIGN_OR_RETURN(const Exclusive<ListObject> object,
                        Exclusive<ListObject>::Enter(list, argument));
  return RunValue::Of(std::make_shared<const ListValue>(ListValue{object->elements}));
}

Status CheckListFits(const Type& type, const RunValue& value, const std::string& name) {
  if (type.kind != TypeKind::kList) {
    if (value.kind != TypeKind::kTensor) return InvalidArgument(name, " is a list, must be ", type);
    const Type given = Type::Tensor(value.tensor.dtype, value.tensor.dims);
    const auto merged = MergeTypes(type, given);
    return merged.ok() ? OkStatus()
                       : InvalidArgument(name, " is ", given, ", must be ", type, ": ",
                                         merged.status().message());
  }
  if (value.kind != TypeKind::kList)
    return InvalidArgument(name, " is ", KindOf(value), ", must be ", type);
  const std::vector<RunValue>& elements = value.list().elements;
  for (size_t i = 0; i < elements.size(); ++i) {
    MSRT_RETURN_IF_ERROR(
        CheckListFits(*type.element, elements[i], StrCat("element ", i, " of ", name)));
  }
  return OkStatus();
}

msrt_list* PublishList(std::shared_ptr<const Environment> environment, const ListValue& list) {
  auto object = std::make_shared<ListObject>();
  object->elements = WithEnvironment(environment, list).elements;
  object->depth = DepthOf(list);
  object->environment = std::move(environment);
  return NewHandle(std::move(object));
}

}  // namespace msrt

using namespace msrt;

msrt_status msrt_list_create(msrt_runtime* runtime, msrt_list** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<RuntimeObject> owner,
                          ObjectOf<RuntimeObject>(runtime, "runtime"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    auto list = std::make_shared<ListObject>();
    list->environment = owner->environment();
    *out = NewHandle(std::move(list));
    return OkStatus();
  });
}

msrt_status msrt_list_append(msrt_list* list, const msrt_tensor* tensor) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<ListObject> object,
                          Exclusive<ListObject>::Enter(list, "list"));
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<TensorObject> from, HostTensor(tensor, "tensor"));
    MSRT_ASSIGN_OR_RETURN(std::shared_ptr<TensorObject> copy,
                          CopyTensor(object->environment, from->view, "an element of a list"));
    object->elements.push_back(LastingValue(std::move(copy)));
    return OkStatus();
  });
}

msrt_status msrt_list_append_list(msrt_list* list, const msrt_list* element) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(RunValue value, ListArgument(element, "element"));
    MSRT_ASSIGN_OR_RETURN(const Exclusive<ListObject> object,
                          Exclusive<ListObject>::Enter(list, "list"));
    const int depth = std::max(object->depth, DepthOf(value.list()) + 1);
    if (depth > kMaxListDepth)
      return InvalidArgument("element: lists of lists are more than ", kMaxListDepth,
                             " levels deep");
    object->elements.push_back(std::move(value));
    object->depth = depth;
    return OkStatus();
  });
}

msrt_status msrt_list_length(const msrt_list* list, size_t* out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<ListObject> object,
                          Exclusive<ListObject>::Enter(list, "list"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    *out = object->elements.size();
    return OkStatus();
  });
}

msrt_status msrt_list_element(const msrt_list* list, size_t index, msrt_tensor** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(const RunValue element, ElementAt(list, index, TypeKind::kTensor));
    // The owner of every tensor in a list of the C API is a TensorObject: see LastingValue.
    *out = NewHandle(
        std::make_shared<TensorObject>(*static_cast<const TensorObject*>(element.owner.get())));
    return OkStatus();
  });
}

msrt_status msrt_list_element_list(const msrt_list* list, size_t index, msrt_list** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(const RunValue element, ElementAt(list, index, TypeKind::kList));
    auto inner = std::make_shared<ListObject>();
    {
      MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<ListObject> outer,
                            ObjectOf<ListObject>(list, "list"));
      inner->environment = outer->environment;
    }
    inner->elements = element.list().elements;
    inner->depth = DepthOf(element.list());
    *out = NewHandle(std::move(inner));
    return OkStatus();
  });
}

void msrt_list_destroy(msrt_list* list) { DestroyHandle<ListObject>(list); }
