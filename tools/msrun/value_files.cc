#include "tools/msrun/value_files.h"

#include <cstdio>
#include <filesystem>

#include "delegates/reference/elements.h"
#include "tools/tensors/made_input.h"
#include "tools/tensors/npy.h"

namespace msrt {

RunValue ValueOf(const ConstTensor& tensor) {
  RunValue value = RunValue::Of(ViewOf(tensor), tensor.owner);
  value.lasting = true;
  return value;
}

namespace {

namespace fs = std::filesystem;

RunValue ListOf(std::vector<RunValue> elements) {
  return RunValue::Of(std::make_shared<const ListValue>(ListValue{std::move(elements)}));
}

std::string ElementPath(const std::string& folder, size_t i) { return StrCat(folder, "/", i); }

// Removes the elements of a list from index `first` on.
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
  if (type.kind != TypeKind::kList)
    return Unsupported("'", path, "': a ", type, " cannot be read from files");
  const bool of_tensors = type.element->is_tensor();
  if (fs::is_regular_file(path) &&
      of_tensors) {  // an optional input is a list of one tensor or none
    MSRT_ASSIGN_OR_RETURN(RunValue element, ReadValue(path, *type.element));
    return ListOf({std::move(element)});
  }
  if (!fs::is_directory(path)) {
    return NotFound("'", path, "' is no folder; ", type, " is read from a folder with ",
                    of_tensors ? "0.npy, 1.npy, ..." : "folders 0, 1, ...",
                    of_tensors ? ", or from one .npy file if it has one element" : "");
  }
  const std::string end = of_tensors ? ".npy" : "";
  std::vector<RunValue> elements;
  while (fs::exists(ElementPath(path, elements.size()) + end)) {
    MSRT_ASSIGN_OR_RETURN(RunValue element,
                          ReadValue(ElementPath(path, elements.size()) + end, *type.element));
    elements.push_back(std::move(element));
  }
  return ListOf(std::move(elements));
}

Status WriteValue(const std::string& path, const RunValue& value) {
  if (value.kind == TypeKind::kTensor) return WriteNpy(path + ".npy", value.tensor);
  if (value.kind != TypeKind::kList)
    return Unsupported("'", path, "': a function cannot be written");
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return IoError("folder '", path, "': ", error.message());
  const std::vector<RunValue>& elements = value.list().elements;
  for (size_t i = 0; i < elements.size(); ++i)
    MSRT_RETURN_IF_ERROR(WriteValue(ElementPath(path, i), elements[i]));
  return RemoveFrom(path, elements.size());
}

Result<RunValue> RandomValue(const Graph& graph, ValueId input, const Dims& dims,
                             std::mt19937_64& random) {
  const Value& value = graph.value(input);
  if (value.type.is_tensor()) {
    MSRT_ASSIGN_OR_RETURN(const ConstTensor tensor, RandomInput(graph, input, dims, random));
    return ValueOf(tensor);
  }
  if (value.type.kind != TypeKind::kList)
    return Unsupported("input '", value.name, "' is ", value.type, ", which cannot be made up");
  Graph inside;
  const ValueId element = inside.AddInput(value.name, *value.type.element);
  MSRT_ASSIGN_OR_RETURN(RunValue made, RandomValue(inside, element, dims, random));
  return ListOf({std::move(made)});
}

namespace {

template <typename T>
std::string NumberText(DType dtype, T number) {
  if (dtype == DType::kBool) return number != 0 ? "true" : "false";
  if constexpr (!std::is_floating_point_v<T>) return StrCat(number);
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", static_cast<double>(number));
  return text;
}

}  // namespace

std::string ElementsText(const TensorView& tensor, int64_t max_elements) {
  const int64_t shown = std::min(tensor.elements(), max_elements);
  std::string out = "[";
  reference::DispatchWide(tensor.dtype, [&]<typename T>() {
    std::vector<T> values(static_cast<size_t>(shown));
    reference::LoadElements(tensor.dtype, tensor.data, 0, 1, shown, values.data());
    for (const T v : values)
      StrAppend(&out, out.size() == 1 ? "" : ", ", NumberText(tensor.dtype, v));
  });
  return out + (shown < tensor.elements() ? ", ...]" : "]");
}

std::string ValueText(const RunValue& value) {
  if (value.kind == TypeKind::kTensor)
    return StrCat(DTypeName(value.tensor.dtype), " ", ShapeText(value.tensor.dims));
  if (value.kind != TypeKind::kList) return "a function";
  return StrCat("list of ", value.list().elements.size());
}

}  // namespace msrt
