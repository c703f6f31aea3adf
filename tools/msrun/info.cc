#include "tools/msrun/info.h"

#include <cstdio>

#include "tools/msrun/model_source.h"

namespace msrt {
namespace {

using Json = nlohmann::json;

Json PortJson(const Module& module, const Value& v) {
  if (!v.type.is_tensor()) return {{"name", v.name}, {"type", StrCat(v.type)}};
  Json dims = Json::array();
  for (int64_t d : v.type.dims) {
    if (IsKnown(d)) dims.push_back(d);
    else if (IsSymbol(d)) dims.push_back(module.symbols[SymbolOf(d)]);
    else dims.push_back(nullptr);
  }
  return {{"name", v.name},
          {"type", DTypeName(v.type.dtype)},
          {"dims", v.type.rank_known ? dims : Json(nullptr)}};
}

Json ModelJson(const Module& module) {
  const Graph& graph = module.main();
  Json inputs = Json::array(), outputs = Json::array(), ops = Json::object(),
       states = Json::array();
  for (ValueId v : graph.inputs) inputs.push_back(PortJson(module, graph.value(v)));
  for (ValueId v : graph.outputs) outputs.push_back(PortJson(module, graph.value(v)));
  for (const StateSlot& s : module.states)
    states.push_back({{"name", s.name}, {"type", StrCat(s.type)}, {"role", StateRoleName(s.role)}});
  size_t weights = 0;
  for (const Graph& g : module.graphs) {
    for (const Node& n : g.nodes) ops[OpName(n)] = ops.value(OpName(n), 0) + 1;
    for (uint32_t v = 0; v < g.value_count(); ++v)
      weights += g.value(ValueId(v)).constant ? g.value(ValueId(v)).constant->bytes.size() : 0;
  }
  return {{"name", module.name},
          {"producer", module.producer},
          {"graphs", module.graphs.size()},
          {"nodes", graph.nodes.size()},
          {"weights_bytes", weights},
          {"inputs", inputs},
          {"outputs", outputs},
          {"states", states},
          {"ops", ops}};
}

// Describes the packed weights that the file has for one kind of machine; null if it has none.
Json PackedJson(const ModelExtras& extras) {
  if (extras.packed.empty()) return nullptr;
  const PackedSummary packed = Summarize(extras.packed);
  return {{"weights", packed.weights}, {"bytes", packed.bytes}, {"isa", packed.isas}};
}

void PrintModel(const Json& info) {
  std::printf("%s by %s: %zu nodes in %zu graphs, %.1f MB of weights\n",
              info["name"].get<std::string>().c_str(), info["producer"].get<std::string>().c_str(),
              info["nodes"].get<size_t>(), info["graphs"].get<size_t>(),
              info["weights_bytes"].get<double>() * 1e-6);
  if (const Json& packed = info["packed"]; !packed.is_null()) {
    std::printf("packed   %zu weights, %.1f MB, for %s\n", packed["weights"].get<size_t>(),
                packed["bytes"].get<double>() * 1e-6, packed["isa"].dump().c_str());
  }
  for (const char* kind : {"inputs", "outputs", "states"}) {
    for (const Json& port : info[kind])
      std::printf("%-8.*s %s %s %s\n", static_cast<int>(std::string(kind).size() - 1), kind,
                  port["name"].get<std::string>().c_str(), port["type"].get<std::string>().c_str(),
                  (port.contains("dims") ? port["dims"].dump() : port.value("role", "")).c_str());
  }
  for (const auto& [op, count] : info["ops"].items())
    std::printf("  %-32s %d\n", op.c_str(), count.get<int>());
}

}  // namespace

Result<Json> Info(const Arguments& a) {
  MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<const Environment> env, MakeEnvironment(a));
  Json info = Json::object();
  if (!a.model.empty()) {
    ModelExtras extras;
    MSRT_ASSIGN_OR_RETURN(const Module module, ReadModel(env->io, a.model, &extras));
    info = ModelJson(module);
    info["packed"] = PackedJson(extras);
  }
  info["delegates"] = Json::array();
  for (const auto& delegate : env->delegates) {
    info["delegates"].push_back(
        {{"name", delegate->name()}, {"device", !delegate->devices().empty()}});
  }
  return info;
}

void PrintInfo(const Json& info) {
  if (info.contains("name")) return PrintModel(info);
  for (const Json& delegate : info["delegates"]) {
    std::printf("delegate %s%s\n", delegate["name"].get<std::string>().c_str(),
                delegate["device"].get<bool>() ? ", with memory and streams of its own" : "");
  }
}

}  // namespace msrt
