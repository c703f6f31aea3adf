#include <map>

#include "core/api/model.h"
#include "core/graph/constants.h"

namespace msrt {
namespace {

void WritePorts(JsonWriter* json, std::string_view key, const Graph& graph,
                std::span<const ValueId> values, const Module& module) {
  json->Key(key);
  json->BeginArray();
  for (ValueId v : values)
    WriteTensorType(json, graph.value(v).name, graph.value(v).type, module.symbols);
  json->EndArray();
}

void WriteTimes(JsonWriter* json, const LoadTimes& times) {
  json->Key("load_ms");
  json->BeginObject();
  json->Field("map", times.map);
  json->Field("verify", times.verify);
  json->Field("validate", times.validate);
  json->Field("passes", times.passes);
  json->Field("place", times.place);
  json->Field("compile", times.compile);
  json->Field("prepare", times.prepare);
  json->Field("total", times.total());
  json->EndObject();
}

// Describes the graphs after the passes: those that run, not those in the file.
void WriteContents(JsonWriter* json, const CompiledModel& model) {
  std::map<std::string, size_t> ops;
  size_t packed_bytes = 0;
  for (const Graph& graph : model.module.graphs) {
    for (const Node& node : graph.nodes) ++ops[OpName(node)];
  }
  for (const auto& placed : ProgramsOf(model))
    packed_bytes += placed == nullptr ? 0 : placed->program->packed_bytes;
  json->Key("ops");
  json->BeginObject();
  for (const auto& [op, count] : ops) json->Field(op, count);
  json->EndObject();
  json->Field("weights_bytes", ConstantBytes(model.module));
  json->Field("packed_bytes", packed_bytes);
  json->Field("packed_in_file_bytes",
              model.forms == nullptr ? size_t{0} : model.forms->found_bytes());
}

}  // namespace

void WriteTensorType(JsonWriter* json, std::string_view name, const Type& type,
                     std::span<const std::string> symbols, std::string_view role) {
  json->BeginObject();
  json->Field("name", name);
  if (!role.empty()) json->Field("role", role);
  if (!type.is_tensor()) {
    json->Field("type", StrCat(type));
    json->EndObject();
    return;
  }
  json->Field("type", DTypeName(type.dtype));
  json->Key("dims");
  if (type.rank_known) {
    json->BeginArray();
    for (int64_t dim : type.dims) {
      if (IsKnown(dim)) json->Value(dim);
      else if (IsSymbol(dim) && SymbolOf(dim) < symbols.size()) json->Value(symbols[SymbolOf(dim)]);
      else json->Null();
    }
    json->EndArray();
  } else {
    json->Null();
  }
  json->EndObject();
}

std::string ModelInfo(const CompiledModel& model) {
  const Module& module = model.module;
  JsonWriter json;
  json.BeginObject();
  json.Field("name", module.name);
  json.Field("producer", module.producer);
  json.Key("entries");
  json.BeginArray();
  for (uint32_t entry : module.entries) {
    const Graph& graph = module.graphs[entry];
    json.BeginObject();
    json.Field("name", graph.name);
    WritePorts(&json, "inputs", graph, graph.inputs, module);
    WritePorts(&json, "outputs", graph, graph.outputs, module);
    json.EndObject();
  }
  json.EndArray();
  json.Key("states");
  json.BeginArray();
  for (const StateSlot& state : module.states)
    WriteTensorType(&json, state.name, state.type, module.symbols, StateRoleName(state.role));
  json.EndArray();
  json.Key("metadata");
  json.BeginObject();
  for (const auto& [key, value] : module.metadata) json.Field(key, value);
  json.EndObject();
  WriteContents(&json, model);
  json.Key("passes");
  json.BeginArray();
  for (const PassReport& pass : model.passes) {
    json.BeginObject();
    json.Field("name", pass.name);
    json.Field("ms", pass.millis);
    json.Field("nodes_before", pass.nodes_before);
    json.Field("nodes_after", pass.nodes_after);
    json.EndObject();
  }
  json.EndArray();
  WriteTimes(&json, model.times);
  json.EndObject();
  return json.Take();
}

}  // namespace msrt
