#include "core/compile/homes.h"

#include <algorithm>

#include "ops/control.h"

namespace msrt {
namespace {

bool IsCalled(const Module& module, uint32_t graph) {
  for (const Graph& g : module.graphs) {
    for (const Node& node : g.nodes) {
      if (!IsControl(node)) continue;
      const std::vector<uint32_t> called = ShapeOfControl(node).graphs;
      if (std::find(called.begin(), called.end(), graph) != called.end()) return true;
    }
  }
  return false;
}

template <typename Visit>
void ForEachPort(const Graph& graph, const Visit& visit) {
  for (ValueId v : graph.inputs) visit(v);
  for (ValueId v : graph.outputs) visit(v);
}

}  // namespace

Result<std::vector<std::pair<ValueId, std::string>>> FindHomes(const CompiledModel& model,
                                                               uint32_t number) {
  std::vector<std::pair<ValueId, std::string>> homes;
  const std::vector<uint32_t>& entries = model.module.entries;
  if (model.options.io_devices.empty() ||
      std::find(entries.begin(), entries.end(), number) == entries.end())
    return homes;
  const Graph& graph = model.module.graphs[number];
  Status status;
  ForEachPort(graph, [&](ValueId v) {
    for (const auto& [name, device] : model.options.io_devices) {
      if (graph.value(v).name != name) continue;
      if (!graph.value(v).type.is_tensor())
        status = InvalidArgument("'", name, "' is not a tensor and cannot be on a device");
      const std::pair<ValueId, std::string> home(v, device);
      if (std::find(homes.begin(), homes.end(), home) == homes.end()) homes.push_back(home);
    }
  });
  if (!homes.empty() && IsCalled(model.module, number)) {
    status = Unsupported("function '", graph.name,
                         "' is called by other graphs, so its inputs and outputs cannot be on a "
                         "device");
  }
  MSRT_RETURN_IF_ERROR(std::move(status));
  return homes;
}

Status CheckHomeNames(const CompiledModel& model) {
  for (const auto& [name, device] : model.options.io_devices) {
    bool found = false;
    for (uint32_t entry : model.module.entries) {
      const Graph& graph = model.module.graphs[entry];
      ForEachPort(graph,
                  [&, &wanted = name](ValueId v) { found |= graph.value(v).name == wanted; });
    }
    if (!found)
      return NotFound("'", name, "', which is to be on device '", device,
                      "', is no input or output of the model");
  }
  return OkStatus();
}

}  // namespace msrt
