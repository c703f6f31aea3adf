#include "tools/msconvert/state.h"

#include <algorithm>
#include <memory>

#include "core/base/countable.h"
#include "ops/builder.h"

namespace msrt {
namespace {

Result<size_t> PortNamed(const Graph& graph, std::span<const ValueId> ports, std::string_view name,
                         std::string_view what) {
  std::string known;
  for (size_t i = 0; i < ports.size(); ++i) {
    const std::string& candidate = graph.value(ports[i]).name;
    if (candidate == name) return i;
    StrAppend(&known, known.empty() ? "" : ", ", candidate);
  }
  return NotFound("the model has no ", what, " '", name, "'; it has ",
                  known.empty() ? "none" : known);
}

Result<ConstTensor> Zeros(const Value& input) {
  const Type& type = input.type;
  if (!type.is_tensor())
    return InvalidArgument("input '", input.name, "' is ", type, "; only a tensor can be state");
  if (!type.concrete()) {
    return InvalidArgument("input '", input.name, "' is ", type,
                           ": its dims must be known; give them with --shape ", input.name, "=...");
  }
  if (!IsCountable(type.dims))
    return InvalidArgument("input '", input.name, "' is ", type,
                           ", which is more than 2^56 elements");
  const auto bytes = std::make_shared<std::vector<std::byte>>(type.bytes());
  return ConstTensor{type.dtype, type.dims, *bytes, bytes};
}

Status KeepPair(std::string_view from, std::string_view to, Module* module) {
  Graph& graph = module->main();
  MSRT_ASSIGN_OR_RETURN(const size_t input_index, PortNamed(graph, graph.inputs, from, "input"));
  MSRT_ASSIGN_OR_RETURN(const size_t output_index, PortNamed(graph, graph.outputs, to, "output"));
  const ValueId input = graph.inputs[input_index], output = graph.outputs[output_index];
  const Value declared = graph.value(input);
  MSRT_ASSIGN_OR_RETURN(ConstTensor zeros, Zeros(declared));
  const auto fits = MergeTypes(declared.type, graph.value(output).type);
  if (!fits.ok()) {
    return InvalidArgument("output '", to, "' is ", graph.value(output).type, ", input '", from,
                           "' ", declared.type, ": ", fits.status().message());
  }
  const auto slot = static_cast<int64_t>(module->states.size());
  module->states.push_back({declared.name, declared.type, std::move(zeros)});
  const std::vector<int64_t> dims(declared.type.dims.begin(), declared.type.dims.end());
  GraphBuilder builder(&graph);
  MSRT_ASSIGN_OR_RETURN(
      const std::vector<ValueId> read,
      builder.Add("msrt", "StateRead", StrCat(from, ".read"), {},
                  {{"slot", slot}, {"dtype", declared.type.dtype}, {"dims", dims}}, 1));
  std::rotate(graph.nodes.begin(), graph.nodes.end() - 1,
              graph.nodes.end());  // before all nodes that read the input
  graph.inputs.erase(graph.inputs.begin() + static_cast<ptrdiff_t>(input_index));
  graph.ReplaceUses(input, read[0]);
  const ValueId written =
      graph.outputs[output_index];  // the state itself, if the model returns it unchanged
  graph.outputs.erase(graph.outputs.begin() + static_cast<ptrdiff_t>(output_index));
  MSRT_RETURN_IF_ERROR(
      builder.Add("msrt", "StateWrite", StrCat(from, ".write"), {written}, {{"slot", slot}}, 0)
          .status());
  return OkStatus();
}

}  // namespace

Status KeepAsState(std::span<const std::string> pairs, Module* module) {
  for (const std::string& pair : pairs) {
    const size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == pair.size()) {
      return InvalidArgument("--state ", pair, ": must look like INPUT=OUTPUT");
    }
    Status status = KeepPair(std::string_view(pair).substr(0, equals),
                             std::string_view(pair).substr(equals + 1), module);
    if (!status.ok()) return std::move(status).Within(StrCat("--state ", pair));
  }
  if (!pairs.empty()) module->main().CompactValues();
  return OkStatus();
}

}  // namespace msrt
