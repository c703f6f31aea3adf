#include "tools/msrun/value_files.h"

#include <filesystem>

#include "tools/tensors/made_input.h"
#include "tools/tensors/npy.h"

namespace msrt {
namespace {

namespace fs = std::filesystem;

RunValue ValueOf(const ConstTensor& tensor) {
  RunValue value = RunValue::Of(ViewOf(tensor), tensor.owner);
  value.lasting = true;
  return value;
}

RunValue ListOf(std::vector<RunValue> elements) { return RunValue::Of(std::make_shared<const ListValue>(ListValue{std::move(elements)})); }

std::string ElementPath(const std::string& folder, size_t i) { return StrCat(folder, "/", i); }

Status RemoveFrom(const std::string& folder, size_t first) {
  std::error_code error;
  for (size_t i = first;; ++i) {
    const bool file = fs::remove(ElementPath(folder, i) + ".npy", error);
    if (!file && !error && !fs::is_directory(ElementPath(folder, i))) return OkStatus();
    if (!error && !file) fs::remove_all(ElementPath(folder, i), error);
    if (error) return IoError("folder '", folder, "': ", error.message());
  }
}

}  // namespace

Result<RunValue> ReadValue(const std::string& path, const Type& type) {
  if (type.is_tensor()) {
    MSRT_ASSIGN_OR_RETURN(const ConstTensor tensor, ReadNpy(path, type.dtype));
    return ValueOf(tensor);
  }
  if (type.kind != TypeKind::kList) return Unsupported("'", path, "': a ", type, " cannot be read from files");
  if (!fs::is_directory(path)) return InvalidArgument("'", path, "' is no folder; ", type, " is read from a folder with 0.npy, 1.npy, ...");
  const std::string end = type.element->is_tensor() ? ".npy" : "";
  std::vector<RunValue> elements;
  while (fs::exists(ElementPath(path, elements.size()) + end)) {
    MSRT_ASSIGN_OR_RETURN(RunValue element, ReadValue(ElementPath(path, elements.size()) + end, *type.element));
    elements.push_back(std::move(element));
  }
  return ListOf(std::move(elements));
}

Status WriteValue(const std::string& path, const RunValue& value) {
  if (value.kind == TypeKind::kTensor) return WriteNpy(path + ".npy", value.tensor);
  if (value.kind != TypeKind::kList) return Unsupported("'", path, "': a function cannot be written");
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return IoError("folder '", path, "': ", error.message());
  const std::vector<RunValue>& elements = value.list().elements;
  for (size_t i = 0; i < elements.size(); ++i) MSRT_RETURN_IF_ERROR(WriteValue(ElementPath(path, i), elements[i]));
  return RemoveFrom(path, elements.size());
}

Result<RunValue> MadeValue(const Graph& graph, ValueId input, const Dims& dims, std::mt19937_64& random) {
  const Value& value = graph.value(input);
  if (value.type.is_tensor()) {
    MSRT_ASSIGN_OR_RETURN(const ConstTensor tensor, RandomInput(graph, input, dims, random));
    return ValueOf(tensor);
  }
  if (value.type.kind != TypeKind::kList) return Unsupported("input '", value.name, "' is ", value.type, ", which cannot be made up");
  Graph inside;
  const ValueId element = inside.AddInput(value.name, *value.type.element);
  MSRT_ASSIGN_OR_RETURN(RunValue made, MadeValue(inside, element, dims, random));
  return ListOf({std::move(made)});
}

std::string ValueText(const RunValue& value) {
  if (value.kind == TypeKind::kTensor) return StrCat(DTypeName(value.tensor.dtype), " ", ShapeText(value.tensor.dims));
  if (value.kind != TypeKind::kList) return "a function";
  return StrCat("list of ", value.list().elements.size());
}

}  // namespace msrt
