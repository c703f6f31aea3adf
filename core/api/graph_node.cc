#include <algorithm>
#include <optional>

#include "core/api/arguments.h"
#include "core/api/errors.h"
#include "core/api/exclusive.h"
#include "core/api/graph.h"
#include "core/api/tensor.h"
#include "ops/builder.h"
#include "ops/control.h"
#include "ops/infer.h"
#include "ops/node_view.h"
#include "ops/registry.h"

namespace msrt {
namespace {

// No op has so many inputs or attributes. A larger count is a mistake, and reading that far would
// leave the caller's memory.
constexpr size_t kMaxCount = 65536;

Status CheckCount(size_t count, const void* list, std::string_view count_name,
                  std::string_view list_name) {
  if (count > kMaxCount)
    return InvalidArgument(count_name, " is ", count, ", must be at most ", kMaxCount);
  return count == 0 ? OkStatus() : NotNull(list, list_name);
}

Result<std::vector<std::string>> StringsArgument(const char* const* strings, size_t count,
                                                 const std::string& argument) {
  std::vector<std::string> result;
  for (size_t i = 0; i < count; ++i) {
    MSRT_RETURN_IF_ERROR(NotNull(strings[i], StrCat(argument, ".strings[", i, "]")));
    result.emplace_back(strings[i]);
  }
  return result;
}

Result<std::vector<GraphRef>> GraphsArgument(const GraphObject& graph,
                                             const msrt_graph* const* graphs, size_t count,
                                             const std::string& argument) {
  std::vector<GraphRef> result;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = StrCat(argument, ".graphs[", i, "]");
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<GraphObject> called,
                          ObjectOf<GraphObject>(graphs[i], name));
    if (called->draft != graph.draft) {
      return InvalidArgument(name, " is graph '", called->graph().name,
                             "' of another model; make it with msrt_graph_add_graph");
    }
    result.push_back({called->index});
  }
  return result;
}

Result<AttrValue> AttrArgument(const GraphObject& graph, const msrt_attr& attr,
                               const std::string& argument) {
  const bool is_list = attr.kind == MSRT_ATTR_INTS || attr.kind == MSRT_ATTR_FLOATS ||
                       attr.kind == MSRT_ATTR_STRINGS || attr.kind == MSRT_ATTR_GRAPHS;
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
      MSRT_ASSIGN_OR_RETURN(std::vector<std::string> strings,
                            StringsArgument(attr.strings, count, argument));
      if (!is_list) return AttrValue(std::move(strings[0]));
      return AttrValue(std::move(strings));
    }
    case MSRT_ATTR_DTYPE: {
      MSRT_ASSIGN_OR_RETURN(const DType dtype, DTypeArgument(attr.dtype, argument + ".dtype"));
      return AttrValue(dtype);
    }
    case MSRT_ATTR_TENSOR: {
      MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<TensorObject> tensor,
                            HostTensor(attr.tensor, argument + ".tensor"));
      MSRT_ASSIGN_OR_RETURN(ConstTensor copy, ConstantCopy(graph.environment(), *tensor));
      return AttrValue(std::move(copy));
    }
    case MSRT_ATTR_GRAPH:
    case MSRT_ATTR_GRAPHS: {
      MSRT_RETURN_IF_ERROR(check(attr.graphs, "graphs"));
      MSRT_ASSIGN_OR_RETURN(std::vector<GraphRef> graphs,
                            GraphsArgument(graph, attr.graphs, count, argument));
      if (!is_list) return AttrValue(graphs[0]);
      return AttrValue(std::move(graphs));
    }
    default:
      return InvalidArgument(argument, ".kind is ", attr.kind,
                             ", must be from MSRT_ATTR_INT = 0 to MSRT_ATTR_GRAPHS = 9");
  }
}

Result<std::vector<ValueId>> InputsArgument(const GraphObject& graph, const msrt_node_desc& node) {
  MSRT_RETURN_IF_ERROR(
      CheckCount(node.input_count, node.inputs, "node.input_count", "node.inputs"));
  std::vector<ValueId> inputs(node.input_count, kNoValue);
  for (size_t i = 0; i < node.input_count; ++i) {
    if (node.inputs[i] == MSRT_NO_VALUE) continue;
    MSRT_ASSIGN_OR_RETURN(inputs[i],
                          ValueArgument(graph, node.inputs[i], StrCat("node.inputs[", i, "]: ")));
  }
  return inputs;
}

size_t OutputCount(const OpDef* def, size_t asked) {
  if (asked != 0 || def == nullptr) return std::max<size_t>(asked, 1);
  return def->max_outputs == 0 ? 0 : static_cast<size_t>(std::max(def->min_outputs, 1));
}

// Result types of a node that calls graphs; none if one of the graphs has no outputs yet, since it
// may still get some.
Result<std::optional<std::vector<Type>>> ResultsOfCalls(const GraphObject& graph,
                                                        const Node& node) {
  MSRT_RETURN_IF_ERROR(InferTypes(*node.def, NodeView(graph.graph(), node).op(), {}));
  MSRT_ASSIGN_OR_RETURN(const std::vector<GraphCall> calls,
                        CallsOf(node, [&](ValueId v) { return graph.graph().value(v).type; }));
  bool complete = true;
  for (const GraphCall& call : calls) {
    if (graph.module().graphs[call.graph].outputs.empty()) complete = false;
    else MSRT_RETURN_IF_ERROR(CheckArguments(graph.module(), node, call));
  }
  if (!complete) return std::optional<std::vector<Type>>();
  MSRT_ASSIGN_OR_RETURN(std::vector<Type> types, ResultsOf(graph.module(), graph.graph(), node));
  return std::optional(std::move(types));
}

// Output types of a node that calls graphs: the result types of the graphs, merged with the types
// that the application declares.
Result<std::vector<Type>> OutputsOfCalls(const GraphObject& graph, const Node& node, size_t asked,
                                         std::vector<Type> declared, bool wanted) {
  MSRT_ASSIGN_OR_RETURN(std::optional<std::vector<Type>> results, ResultsOfCalls(graph, node));
  if (!results.has_value()) {
    if (declared.empty() && (asked != 0 || wanted)) {
      return InvalidArgument(
          "calls a graph that has no outputs so far: add those first, or give node.output_count "
          "and node.output_types");
    }
    return declared;
  }
  const size_t count = !declared.empty() ? declared.size() : asked == 0 ? results->size() : asked;
  if (count > results->size())
    return InvalidArgument("node.output_count is ", count, ", the called graph has ",
                           results->size());
  results->resize(count);
  for (size_t i = 0; i < declared.size(); ++i) {
    auto merged = MergeTypes(declared[i], (*results)[i]);
    if (!merged.ok())
      return InvalidArgument("node.output_types[", i, "]: the called graph returns ", (*results)[i],
                             ": ", merged.status().message());
    (*results)[i] = *std::move(merged);
  }
  return *std::move(results);
}

Status AddNode(const GraphObject& graph, const msrt_node_desc& desc, msrt_value* outputs) {
  MSRT_RETURN_IF_ERROR(NotNull(desc.op, "node.op"));
  MSRT_RETURN_IF_ERROR(CheckCount(desc.output_count, &desc, "node.output_count", ""));
  const OpSet* ops = graph.environment()->ops.get();
  Node node;
  node.domain = desc.domain == nullptr ? "" : desc.domain;
  node.op = desc.op;
  node.def = FindOp(node.domain, node.op, ops);
  MSRT_ASSIGN_OR_RETURN(node.inputs, InputsArgument(graph, desc));
  MSRT_ASSIGN_OR_RETURN(node.attrs, AttrsArgument(graph, desc));
  const bool named = desc.name != nullptr && *desc.name != '\0';
  node.name = named ? std::string(desc.name) : StrCat(desc.op, "_", graph.graph().nodes.size());
  MSRT_ASSIGN_OR_RETURN(std::vector<Type> declared,
                        OutputTypesArgument(graph, desc, std::max<size_t>(desc.output_count, 1)));
  size_t output_count = OutputCount(node.def, desc.output_count);
  if (IsControl(node)) {
    auto types =
        OutputsOfCalls(graph, node, desc.output_count, std::move(declared), outputs != nullptr);
    if (!types.ok())
      return std::move(types).status().Within(
          StrCat("node '", node.name, "' (", OpName(node), ")"));
    declared = *std::move(types);
    output_count = declared.size();
  }
  if (output_count != 0) MSRT_RETURN_IF_ERROR(NotNull(outputs, "outputs"));
  GraphBuilder builder(&graph.graph(), ops);
  MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> made,
                        builder.Add(node.domain, node.op, node.name, std::move(node.inputs),
                                    std::move(node.attrs), output_count, std::move(declared)));
  for (size_t i = 0; i < made.size(); ++i) outputs[i] = Publish(graph, made[i]);
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
    if (attrs.Find(attr.name) != nullptr)
      return InvalidArgument(argument, ": '", attr.name, "' is given twice");
    MSRT_ASSIGN_OR_RETURN(AttrValue value, AttrArgument(graph, attr, argument));
    attrs.Set(attr.name, std::move(value));
  }
  return attrs;
}

Result<std::vector<Type>> OutputTypesArgument(const GraphObject& graph, const msrt_node_desc& node,
                                              size_t output_count) {
  std::vector<Type> types;
  if (node.output_types == nullptr) return types;
  MSRT_RETURN_IF_ERROR(CheckStructSize(node.output_types, "node.output_types[0]"));
  for (size_t i = 0; i < output_count; ++i) {
    const std::string argument = StrCat("node.output_types[", i, "]");
    MSRT_ASSIGN_OR_RETURN(const msrt_tensor_info info,
                          ConfigArgument(InfoAt(node.output_types, i), argument));
    MSRT_ASSIGN_OR_RETURN(Type type, TypeArgument(info, &graph.module(), argument));
    types.push_back(std::move(type));
  }
  return types;
}

}  // namespace msrt

using namespace msrt;

msrt_status msrt_graph_add_node(msrt_graph* graph, const msrt_node_desc* node,
                                msrt_value* outputs) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<GraphObject> object,
                          Exclusive<GraphObject>::Enter(graph, "graph"));
    MSRT_RETURN_IF_ERROR(NotNull(node, "node"));
    MSRT_ASSIGN_OR_RETURN(const msrt_node_desc desc, ConfigArgument(node, "node"));
    return AddNode(*object, desc, outputs);
  });
}
