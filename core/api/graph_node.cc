#include <algorithm>

#include "core/api/arguments.h"
#include "core/api/errors.h"
#include "core/api/exclusive.h"
#include "core/api/graph.h"
#include "core/api/tensor.h"
#include "ops/builder.h"
#include "ops/registry.h"

namespace msrt {
namespace {

// No op has so many; a larger count is a mistake, and reading that far in the caller's memory would end badly.
constexpr size_t kMostListed = 65536;

Status CheckCount(size_t count, const void* list, std::string_view count_name, std::string_view list_name) {
  if (count > kMostListed) return InvalidArgument(count_name, " is ", count, ", must be at most ", kMostListed);
  return count == 0 ? OkStatus() : NotNull(list, list_name);
}

Result<std::vector<std::string>> StringsArgument(const char* const* strings, size_t count, const std::string& argument) {
  std::vector<std::string> result;
  for (size_t i = 0; i < count; ++i) {
    MSRT_RETURN_IF_ERROR(NotNull(strings[i], StrCat(argument, ".strings[", i, "]")));
    result.emplace_back(strings[i]);
  }
  return result;
}

Result<AttrValue> AttrArgument(const GraphObject& graph, const msrt_attr& attr, const std::string& argument) {
  const bool is_list = attr.kind == MSRT_ATTR_INTS || attr.kind == MSRT_ATTR_FLOATS || attr.kind == MSRT_ATTR_STRINGS;
  const size_t count = is_list ? attr.count : 1;
  const auto check = [&](const void* list, std::string_view field) {
    return CheckCount(count, list, argument + ".count", StrCat(argument, ".", field));
  };
  switch (attr.kind) {
    case MSRT_ATTR_INT:
    case MSRT_ATTR_INTS:
      MSRT_RETURN_IF_ERROR(check(attr.ints, "ints"));
      if (!is_list) return AttrValue(attr.ints[0]);
      return AttrValue(std::vector<int64_t>(attr.ints, attr.ints + count));
    case MSRT_ATTR_FLOAT:
    case MSRT_ATTR_FLOATS:
      MSRT_RETURN_IF_ERROR(check(attr.floats, "floats"));
      if (!is_list) return AttrValue(attr.floats[0]);
      return AttrValue(std::vector<double>(attr.floats, attr.floats + count));
    case MSRT_ATTR_STRING:
    case MSRT_ATTR_STRINGS: {
      MSRT_RETURN_IF_ERROR(check(attr.strings, "strings"));
      MSRT_ASSIGN_OR_RETURN(std::vector<std::string> strings, StringsArgument(attr.strings, count, argument));
      if (!is_list) return AttrValue(std::move(strings[0]));
      return AttrValue(std::move(strings));
    }
    case MSRT_ATTR_DTYPE: {
      MSRT_ASSIGN_OR_RETURN(const DType dtype, DTypeArgument(attr.dtype, argument + ".dtype"));
      return AttrValue(dtype);
    }
    case MSRT_ATTR_TENSOR: {
      MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<TensorObject> tensor, ObjectOf<TensorObject>(attr.tensor, argument + ".tensor"));
      MSRT_ASSIGN_OR_RETURN(ConstTensor copy, ConstantCopy(graph.environment, *tensor));
      return AttrValue(std::move(copy));
    }
    default:
      return InvalidArgument(argument, ".kind is ", attr.kind, ", must be from MSRT_ATTR_INT = 0 to MSRT_ATTR_TENSOR = 7");
  }
}

std::vector<ValueId> InputsOf(const msrt_node_desc& node) {
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < node.input_count; ++i) inputs.push_back(node.inputs[i] == MSRT_NO_VALUE ? kNoValue : ValueId{node.inputs[i]});
  return inputs;
}

size_t OutputCount(const OpDef* def, size_t asked) {
  if (asked != 0 || def == nullptr) return std::max<size_t>(asked, 1);
  return def->max_outputs == 0 ? 0 : static_cast<size_t>(std::max(def->min_outputs, 1));
}

Status AddNode(GraphObject& graph, const msrt_node_desc& node, msrt_value* outputs) {
  MSRT_RETURN_IF_ERROR(NotNull(node.op, "node.op"));
  MSRT_RETURN_IF_ERROR(CheckCount(node.input_count, node.inputs, "node.input_count", "node.inputs"));
  MSRT_RETURN_IF_ERROR(CheckCount(node.output_count, &node, "node.output_count", ""));
  const std::string_view domain = node.domain == nullptr ? "" : node.domain;
  const OpSet* ops = graph.environment->ops.get();
  const size_t output_count = OutputCount(FindOp(domain, node.op, ops), node.output_count);
  if (output_count != 0) MSRT_RETURN_IF_ERROR(NotNull(outputs, "outputs"));
  MSRT_ASSIGN_OR_RETURN(AttrList attrs, AttrsArgument(graph, node));
  MSRT_ASSIGN_OR_RETURN(std::vector<Type> declared, OutputTypesArgument(graph, node, output_count));
  const bool named = node.name != nullptr && *node.name != '\0';
  const std::string name = named ? std::string(node.name) : StrCat(node.op, "_", graph.graph().nodes.size());
  GraphBuilder builder(&graph.graph(), ops);
  MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> made,
                        builder.Add(domain, node.op, name, InputsOf(node), std::move(attrs), output_count, std::move(declared)));
  for (size_t i = 0; i < made.size(); ++i) outputs[i] = IndexOf(made[i]);
  return OkStatus();
}

}  // namespace

Result<AttrList> AttrsArgument(const GraphObject& graph, const msrt_node_desc& node) {
  MSRT_RETURN_IF_ERROR(CheckCount(node.attr_count, node.attrs, "node.attr_count", "node.attrs"));
  AttrList attrs;
  for (size_t i = 0; i < node.attr_count; ++i) {
    const std::string argument = StrCat("node.attrs[", i, "]");
    const msrt_attr& attr = node.attrs[i];
    MSRT_RETURN_IF_ERROR(NotNull(attr.name, argument + ".name"));
    if (attrs.Find(attr.name) != nullptr) return InvalidArgument(argument, ": '", attr.name, "' is given twice");
    MSRT_ASSIGN_OR_RETURN(AttrValue value, AttrArgument(graph, attr, argument));
    attrs.Set(attr.name, std::move(value));
  }
  return attrs;
}

Result<std::vector<Type>> OutputTypesArgument(GraphObject& graph, const msrt_node_desc& node, size_t output_count) {
  std::vector<Type> types;
  if (node.output_types == nullptr) return types;
  MSRT_RETURN_IF_ERROR(CheckStructSize(node.output_types, "node.output_types[0]"));
  const size_t stride = node.output_types->struct_size;  // of the release that the caller was compiled with
  for (size_t i = 0; i < output_count; ++i) {
    const std::string argument = StrCat("node.output_types[", i, "]");
    const auto* given = reinterpret_cast<const msrt_tensor_info*>(reinterpret_cast<const std::byte*>(node.output_types) + i * stride);
    MSRT_ASSIGN_OR_RETURN(const msrt_tensor_info info, ConfigArgument(given, argument));
    MSRT_ASSIGN_OR_RETURN(Type type, TypeArgument(info, &graph.module, argument));
    types.push_back(std::move(type));
  }
  return types;
}

}  // namespace msrt

using namespace msrt;

msrt_status msrt_graph_add_node(msrt_graph* graph, const msrt_node_desc* node, msrt_value* outputs) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<GraphObject> object, Exclusive<GraphObject>::Enter(graph, "graph"));
    MSRT_RETURN_IF_ERROR(NotNull(node, "node"));
    MSRT_ASSIGN_OR_RETURN(const msrt_node_desc desc, ConfigArgument(node, "node"));
    return AddNode(*object, desc, outputs);
  });
}
