#include "core/api/graph.h"

#include <algorithm>

#include "core/api/arguments.h"
#include "core/api/errors.h"
#include "core/api/exclusive.h"
#include "core/api/model.h"
#include "core/api/runtime.h"
#include "core/api/tensor.h"
#include "core/model/write.h"
#include "ops/builder.h"
#include "ops/validate.h"

namespace msrt {
namespace {

Status CheckNewName(const Graph& graph, std::span<const ValueId> values, std::string_view name, std::string_view what) {
  if (name.empty()) return InvalidArgument(what, " has an empty name");
  const auto same = [&](ValueId v) { return graph.value(v).name == name; };
  if (std::none_of(values.begin(), values.end(), same)) return OkStatus();
  return InvalidArgument("there is an ", what, " '", name, "' already; names must differ");
}

Status CheckValue(const Graph& graph, msrt_value value) {
  if (value < graph.value_count()) return OkStatus();
  return InvalidArgument("value ", value, " does not exist in the graph, which has ", graph.value_count());
}

bool Contains(std::span<const ValueId> values, ValueId v) { return std::find(values.begin(), values.end(), v) != values.end(); }

// An output is a value with the output's name. Where the value has a name that others rely on (an input, a constant, another output),
// a copy of it gets the new one.
Status AddOutput(Graph& graph, ValueId value, const char* name) {
  const bool is_output = Contains(graph.outputs, value);
  const std::string wanted = name == nullptr ? graph.value(value).name : std::string(name);
  MSRT_RETURN_IF_ERROR(CheckNewName(graph, graph.outputs, wanted, "output"));
  if (graph.value(value).name != wanted) {
    const bool is_made_by_node = !Contains(graph.inputs, value) && graph.value(value).constant == nullptr;
    if (is_made_by_node && !is_output) {
      graph.value(value).name = wanted;
    } else {
      MSRT_ASSIGN_OR_RETURN(value, GraphBuilder(&graph).Add("Identity", wanted, {value}));
    }
  }
  graph.outputs.push_back(value);
  return OkStatus();
}

Status AddState(GraphObject& graph, const char* name, const msrt_tensor_info* info, const TensorObject& initial) {
  for (const StateSlot& s : graph.module.states) {
    if (s.name == name) return InvalidArgument("there is a state '", name, "' already; names must differ");
  }
  Type type = initial.type();
  if (info != nullptr) {
    MSRT_ASSIGN_OR_RETURN(const msrt_tensor_info given, ConfigArgument(info, "info"));
    MSRT_ASSIGN_OR_RETURN(type, TypeArgument(given, &graph.module, "info"));
    auto merged = MergeTypes(type, initial.type());
    if (!merged.ok()) return InvalidArgument("initial is ", initial.type(), ", which is not the type in info: ", merged.status().message());
  }
  MSRT_ASSIGN_OR_RETURN(ConstTensor copy, ConstantCopy(graph.environment, initial));
  graph.module.states.push_back({name, std::move(type), std::move(copy)});
  return OkStatus();
}

}  // namespace
}  // namespace msrt

using namespace msrt;

msrt_status msrt_graph_create(msrt_runtime* runtime, const char* name, msrt_graph** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<RuntimeObject> owner, ObjectOf<RuntimeObject>(runtime, "runtime"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    auto graph = std::make_shared<GraphObject>();
    graph->environment = owner->environment();
    graph->module.name = name == nullptr ? "" : name;
    graph->module.producer = StrCat("msrt ", msrt_version());
    graph->module.graphs.emplace_back().name = "main";
    graph->module.entries = {0};
    *out = NewHandle(std::move(graph));
    return OkStatus();
  });
}

msrt_status msrt_graph_add_input(msrt_graph* graph, const msrt_tensor_info* info, msrt_value* out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<GraphObject> object, Exclusive<GraphObject>::Enter(graph, "graph"));
    MSRT_RETURN_IF_ERROR(NotNull(info, "info"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(const msrt_tensor_info given, ConfigArgument(info, "info"));
    MSRT_RETURN_IF_ERROR(NotNull(given.name, "info.name"));
    MSRT_RETURN_IF_ERROR(CheckNewName(object->graph(), object->graph().inputs, given.name, "input"));
    MSRT_ASSIGN_OR_RETURN(Type type, TypeArgument(given, &object->module, "info"));
    *out = IndexOf(object->graph().AddInput(given.name, std::move(type)));
    return OkStatus();
  });
}

msrt_status msrt_graph_add_constant(msrt_graph* graph, const char* name, const msrt_tensor* data, msrt_value* out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<GraphObject> object, Exclusive<GraphObject>::Enter(graph, "graph"));
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<TensorObject> tensor, ObjectOf<TensorObject>(data, "data"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(ConstTensor copy, ConstantCopy(object->environment, *tensor));
    *out = IndexOf(object->graph().AddConstant(name == nullptr ? "" : name, std::move(copy)));
    return OkStatus();
  });
}

msrt_status msrt_graph_add_state(msrt_graph* graph, const char* name, const msrt_tensor_info* info, const msrt_tensor* initial,
                                 int64_t* slot) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<GraphObject> object, Exclusive<GraphObject>::Enter(graph, "graph"));
    MSRT_RETURN_IF_ERROR(NotNull(name, "name"));
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<TensorObject> tensor, ObjectOf<TensorObject>(initial, "initial"));
    MSRT_RETURN_IF_ERROR(NotNull(slot, "slot"));
    MSRT_RETURN_IF_ERROR(AddState(*object, name, info, *tensor));
    *slot = static_cast<int64_t>(object->module.states.size()) - 1;
    return OkStatus();
  });
}

msrt_status msrt_graph_add_output(msrt_graph* graph, msrt_value value, const char* name) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<GraphObject> object, Exclusive<GraphObject>::Enter(graph, "graph"));
    MSRT_RETURN_IF_ERROR(CheckValue(object->graph(), value));
    return AddOutput(object->graph(), ValueId{value}, name);
  });
}

msrt_status msrt_graph_value_info(msrt_graph* graph, msrt_value value, msrt_tensor_info* info) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<GraphObject> object, Exclusive<GraphObject>::Enter(graph, "graph"));
    MSRT_RETURN_IF_ERROR(CheckValue(object->graph(), value));
    MSRT_RETURN_IF_ERROR(CheckStructSize(info, "info"));
    const Value& found = object->graph().value(ValueId{value});
    MSRT_ASSIGN_OR_RETURN(const msrt_tensor_info filled, InfoOf(found.type, found.name.c_str(), object->module.symbols));
    WriteStruct(info, filled);
    return OkStatus();
  });
}

msrt_status msrt_graph_save(msrt_graph* graph, const char* path) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<GraphObject> object, Exclusive<GraphObject>::Enter(graph, "graph"));
    MSRT_RETURN_IF_ERROR(NotNull(path, "path"));
    Module module = object->module;
    MSRT_RETURN_IF_ERROR(Validate(&module, object->environment->ops.get()));
    return WriteModel(module, path, object->environment->io);
  });
}

msrt_status msrt_graph_compile(msrt_graph* graph, const msrt_model_config* config, msrt_model** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<GraphObject> object, Exclusive<GraphObject>::Enter(graph, "graph"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(const CompileOptions options, CompileOptionsOf(config, *object->environment));
    auto model = std::make_shared<ModelObject>();
    MSRT_ASSIGN_OR_RETURN(model->compiled, CompileModule(object->environment, object->module, options));
    MSRT_RETURN_IF_ERROR(CheckTypicalNames(options, *model->compiled));
    *out = NewHandle(std::move(model));
    return OkStatus();
  });
}

void msrt_graph_destroy(msrt_graph* graph) { DestroyHandle<GraphObject>(graph); }
