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

Status CheckNewName(const Graph& graph, std::span<const ValueId> values, std::string_view name,
                    std::string_view what) {
  if (name.empty()) return InvalidArgument(what, " has an empty name");
  const auto same = [&](ValueId v) { return graph.value(v).name == name; };
  if (std::none_of(values.begin(), values.end(), same)) return OkStatus();
  return InvalidArgument("there is an ", what, " '", name, "' already; names must differ");
}

Status CheckNewGraph(std::span<const Graph> graphs, std::string_view name) {
  if (name.empty())
    return InvalidArgument("name is empty; a graph needs one, for messages and dumps");
  const auto same = [&](const Graph& g) { return g.name == name; };
  if (std::none_of(graphs.begin(), graphs.end(), same)) return OkStatus();
  return InvalidArgument("name: there is a graph '", name,
                         "' already; names must differ (the first graph of a model is 'main')");
}

bool Contains(std::span<const ValueId> values, ValueId v) {
  return std::find(values.begin(), values.end(), v) != values.end();
}

// An output is a value with the output's name. Where the value has a name that others rely on (an
// input, a constant, another output), a copy of it gets the new one.
Status AddOutput(Graph& graph, ValueId value, const char* name) {
  const bool is_output = Contains(graph.outputs, value);
  const std::string wanted = name == nullptr ? graph.value(value).name : std::string(name);
  MSRT_RETURN_IF_ERROR(CheckNewName(graph, graph.outputs, wanted, "output"));
  if (graph.value(value).name != wanted) {
    const bool is_made_by_node =
        !Contains(graph.inputs, value) && graph.value(value).constant == nullptr;
    if (is_made_by_node && !is_output) {
      graph.value(value).name = wanted;
    } else if (!graph.value(value).type.is_tensor()) {
      return InvalidArgument("name is '", wanted, "', but '", graph.value(value).name, "' is ",
                             graph.value(value).type,
                             ", and only tensors can be outputs under several names: pass NULL");
    } else {
      MSRT_ASSIGN_OR_RETURN(value, GraphBuilder(&graph).Add("Identity", wanted, {value}));
    }
  }
  graph.outputs.push_back(value);
  return OkStatus();
}

Result<StateRole> RoleArgument(msrt_state_role role) {
  if (role < 0 || role >= static_cast<msrt_state_role>(kStateRoleCount)) {
    return InvalidArgument("info.state_role is ", role,
                           ", which is not a role; those are MSRT_STATE_CACHE = 0 to "
                           "MSRT_STATE_STATISTIC = ",
                           kStateRoleCount - 1);
  }
  return static_cast<StateRole>(role);
}

Status AddState(const GraphObject& graph, const char* name, const msrt_tensor_info* info,
                const TensorObject& initial) {
  for (const StateSlot& s : graph.module().states) {
    if (s.name == name)
      return InvalidArgument("there is a state '", name, "' already; names must differ");
  }
  Type type = initial.type();
  StateRole role = StateRole::kCache;
  if (info != nullptr) {
    MSRT_ASSIGN_OR_RETURN(msrt_tensor_info given, ConfigArgument(info, "info"));
    MSRT_ASSIGN_OR_RETURN(role, RoleArgument(given.state_role));
    given.state_role = 0;
    MSRT_ASSIGN_OR_RETURN(type, TypeArgument(given, &graph.module(), "info"));
    auto merged = MergeTypes(type, initial.type());
    if (!merged.ok())
      return InvalidArgument("initial is ", initial.type(),
                             ", which is not the type in info: ", merged.status().message());
  }
  MSRT_ASSIGN_OR_RETURN(ConstTensor copy, ConstantCopy(graph.environment(), initial));
  graph.module().states.push_back({name, std::move(type), std::move(copy), role});
  return OkStatus();
}

}  // namespace

msrt_value Publish(const GraphObject& graph, ValueId value) {
  graph.draft->values.push_back({graph.index, value});
  return static_cast<msrt_value>(graph.draft->values.size() - 1);
}

Result<ValueId> ValueArgument(const GraphObject& graph, msrt_value value,
                              std::string_view argument) {
  const auto& values = graph.draft->values;
  if (value >= values.size())
    return InvalidArgument(argument, "value ", value, " does not exist in the model, which has ",
                           values.size());
  if (values[value].graph == graph.index) return values[value].value;
  const Graph& owner = graph.module().graphs[values[value].graph];
  return InvalidArgument(argument, "value ", value, " '", owner.value(values[value].value).name,
                         "' belongs to graph '", owner.name, "', not to '", graph.graph().name,
                         "': a graph sees only its own values; hand it over as an input");
}

}  // namespace msrt

using namespace msrt;

msrt_status msrt_graph_create(msrt_runtime* runtime, const char* name, msrt_graph** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<RuntimeObject> owner,
                          ObjectOf<RuntimeObject>(runtime, "runtime"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    auto draft = std::make_shared<ModuleDraft>();
    draft->environment = owner->environment();
    draft->module.name = name == nullptr ? "" : name;
    draft->module.producer = StrCat("msrt ", msrt_version());
    draft->module.graphs.emplace_back().name = "main";
    draft->module.entries = {0};
    *out = NewHandle(std::make_shared<GraphObject>(std::move(draft), 0));
    return OkStatus();
  });
}

msrt_status msrt_graph_add_graph(msrt_graph* graph, const char* name, msrt_graph** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<GraphObject> object,
                          Exclusive<GraphObject>::Enter(graph, "graph"));
    MSRT_RETURN_IF_ERROR(NotNull(name, "name"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    std::vector<Graph>& graphs = object->module().graphs;
    MSRT_RETURN_IF_ERROR(CheckNewGraph(graphs, name));
    Graph empty;
    empty.name = name;
    if (graphs.size() == graphs.capacity())
      graphs.reserve(2 * graphs.size());  // so that nothing can fail once there is a handle
    *out = NewHandle(
        std::make_shared<GraphObject>(object->draft, static_cast<uint32_t>(graphs.size())));
    graphs.push_back(std::move(empty));
    return OkStatus();
  });
}

msrt_status msrt_graph_add_input(msrt_graph* graph, const msrt_tensor_info* info, msrt_value* out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<GraphObject> object,
                          Exclusive<GraphObject>::Enter(graph, "graph"));
    MSRT_RETURN_IF_ERROR(NotNull(info, "info"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(const msrt_tensor_info given, ConfigArgument(info, "info"));
    MSRT_RETURN_IF_ERROR(NotNull(given.name, "info.name"));
    MSRT_RETURN_IF_ERROR(
        CheckNewName(object->graph(), object->graph().inputs, given.name, "input"));
    MSRT_ASSIGN_OR_RETURN(Type type, TypeArgument(given, &object->module(), "info"));
    *out = Publish(*object, object->graph().AddInput(given.name, std::move(type)));
    return OkStatus();
  });
}

msrt_status msrt_graph_add_constant(msrt_graph* graph, const char* name, const msrt_tensor* data,
                                    msrt_value* out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<GraphObject> object,
                          Exclusive<GraphObject>::Enter(graph, "graph"));
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<TensorObject> tensor, HostTensor(data, "data"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(ConstTensor copy, ConstantCopy(object->environment(), *tensor));
    *out =
        Publish(*object, object->graph().AddConstant(name == nullptr ? "" : name, std::move(copy)));
    return OkStatus();
  });
}

msrt_status msrt_graph_add_state(msrt_graph* graph, const char* name, const msrt_tensor_info* info,
                                 const msrt_tensor* initial, int64_t* slot) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<GraphObject> object,
                          Exclusive<GraphObject>::Enter(graph, "graph"));
    MSRT_RETURN_IF_ERROR(NotNull(name, "name"));
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<TensorObject> tensor,
                          HostTensor(initial, "initial"));
    MSRT_RETURN_IF_ERROR(NotNull(slot, "slot"));
    MSRT_RETURN_IF_ERROR(AddState(*object, name, info, *tensor));
    *slot = static_cast<int64_t>(object->module().states.size()) - 1;
    return OkStatus();
  });
}

msrt_status msrt_graph_add_output(msrt_graph* graph, msrt_value value, const char* name) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<GraphObject> object,
                          Exclusive<GraphObject>::Enter(graph, "graph"));
    MSRT_ASSIGN_OR_RETURN(const ValueId found, ValueArgument(*object, value, ""));
    return AddOutput(object->graph(), found, name);
  });
}

msrt_status msrt_graph_value_info(msrt_graph* graph, msrt_value value, msrt_tensor_info* info) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<GraphObject> object,
                          Exclusive<GraphObject>::Enter(graph, "graph"));
    MSRT_ASSIGN_OR_RETURN(const ValueId id, ValueArgument(*object, value, ""));
    MSRT_RETURN_IF_ERROR(CheckStructSize(info, "info"));
    const Value& found = object->graph().value(id);
    MSRT_ASSIGN_OR_RETURN(const msrt_tensor_info filled,
                          InfoOf(found.type, found.name.c_str(), object->module().symbols));
    WriteStruct(info, filled);
    return OkStatus();
  });
}

msrt_status msrt_graph_save(msrt_graph* graph, const char* path) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<GraphObject> object,
                          Exclusive<GraphObject>::Enter(graph, "graph"));
    MSRT_RETURN_IF_ERROR(NotNull(path, "path"));
    Module module = object->module();
    MSRT_RETURN_IF_ERROR(Validate(&module, object->environment()->ops.get()));
    return WriteModel(module, path, object->environment()->io);
  });
}

msrt_status msrt_graph_compile(msrt_graph* graph, const msrt_model_config* config,
                               msrt_model** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const Exclusive<GraphObject> object,
                          Exclusive<GraphObject>::Enter(graph, "graph"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_ASSIGN_OR_RETURN(const CompileOptions options,
                          CompileOptionsOf(config, *object->environment()));
    auto model = std::make_shared<ModelObject>();
    MSRT_ASSIGN_OR_RETURN(model->compiled,
                          CompileModule(object->environment(), object->module(), options));
    MSRT_RETURN_IF_ERROR(CheckTypicalNames(options, *model->compiled));
    *out = NewHandle(std::move(model));
    return OkStatus();
  });
}

void msrt_graph_destroy(msrt_graph* graph) { DestroyHandle<GraphObject>(graph); }
