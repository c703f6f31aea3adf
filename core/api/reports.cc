// What a session tells about itself, as JSON: the plan, the time, the memory.
#include <algorithm>

#include "core/api/json_writer.h"
#include "core/api/session.h"
#include "core/place/explain.h"

namespace msrt {
namespace {

void WriteNode(JsonWriter* json, const Node& node) {
  json->Field("node", node.name);
  json->Field("op", OpName(node));
}

// Calls write for each element of a list between brackets.
template <typename List, typename Write>
void WriteList(JsonWriter* json, std::string_view key, const List& list, Write&& write) {
  json->Key(key);
  json->BeginArray();
  for (const auto& element : list) write(element);
  json->EndArray();
}

// Why a delegate does not run something.
void WriteReason(JsonWriter* json, std::string_view delegate, std::string_view reason) {
  json->BeginObject();
  json->Field("delegate", delegate);
  json->Field("reason", reason);
  json->EndObject();
}

void WriteExplanation(JsonWriter* json, const Node& node, const NodeExplanation& why) {
  json->BeginObject();
  WriteNode(json, node);
  json->Field("delegate", why.delegate.empty() ? std::string_view("host") : why.delegate);
  json->Field("algorithm", why.algorithm);
  json->Field("us", why.seconds * 1e6);
  json->Field("measured", why.measured);
  WriteList(json, "others", why.others, [&](const auto& other) { WriteReason(json, other.first, other.second); });
  json->EndObject();
}

void WriteNumbers(JsonWriter* json, std::string_view key, const std::vector<uint32_t>& numbers) {
  json->Key(key);
  json->BeginArray();
  for (uint32_t n : numbers) json->Value(n);
  json->EndArray();
}

void WriteTensors(JsonWriter* json, std::string_view key, const Program& program, const std::vector<BufferId>& buffers) {
  json->Key(key);
  json->BeginArray();
  for (BufferId b : MovingBuffers(program, buffers)) {
    const Buffer& buffer = program.buffers[b];
    json->BeginObject();
    json->Field("value", program.graph->value(buffer.value).name);
    json->Field("layout", LayoutName(buffer.state.layout));
    json->Field("device", DeviceName(program, buffer.state.device));
    json->Field("bytes", TypicalBytes(program, b));
    json->EndObject();
  }
  json->EndArray();
}

void WriteStep(JsonWriter* json, const Program& program, const Step& step) {
  json->BeginObject();
  json->Field("kind", StepKindName(step.kind));
  json->Field("delegate", DelegateName(step));
  json->Field("device", DeviceName(program, step.device));
  json->Field("algorithm", step.algorithm);
  WriteNumbers(json, "nodes", step.nodes);
  json->Field("us", step.seconds * 1e6);
  if (step.nodes.empty()) json->Field("moved_bytes", TypicalBytes(program, step.outputs[0]));
  WriteTensors(json, "inputs", program, step.inputs);
  WriteTensors(json, "outputs", program, step.outputs);
  json->EndObject();
}

void WritePartition(JsonWriter* json, const Program& program, const PlanPartition& partition) {
  json->BeginObject();
  json->Field("delegate", partition.delegate);
  json->Field("device", DeviceName(program, partition.device));
  WriteNumbers(json, "nodes", partition.nodes);
  json->Field("kernels_ms", partition.seconds * 1e3);
  json->Field("transfers_ms", partition.transfer_seconds * 1e3);
  json->Field("launch_ms", partition.launch_seconds * 1e3);
  json->Field("bytes_in", partition.bytes_in);
  json->Field("bytes_out", partition.bytes_out);
  json->EndObject();
}

// By all graphs of the model: one that is called may do without a delegate that its caller uses.
std::vector<LostDelegate> LostDelegates(const CompiledModel& model) {
  std::vector<LostDelegate> all;
  for (const auto& current : ProgramsOf(model)) {
    if (current == nullptr) continue;
    for (const LostDelegate& lost : current->program->lost) {
      if (std::none_of(all.begin(), all.end(), [&](const LostDelegate& known) { return known.name == lost.name; })) all.push_back(lost);
    }
  }
  return all;
}

}  // namespace

std::string PlanReport(const Session& session) {
  const Program& program = session.program();
  const Plan plan = PlanOf(program);
  JsonWriter json;
  json.BeginObject();
  json.Field("function", program.graph->name);
  json.Field("expected_ms", program.seconds * 1e3);
  json.Field("lower_bound_ms", program.lower_bound * 1e3);
  json.Field("optimal", program.optimal);
  json.Field("kernels_ms", plan.kernel_seconds * 1e3);
  json.Field("transfers_ms", plan.transfer_seconds * 1e3);
  json.Field("launches_ms", plan.launch_seconds * 1e3);
  json.Field("flops", program.flops);
  json.Field("packed_bytes", program.packed_bytes);
  json.Key("devices");
  json.BeginArray();
  for (uint16_t d = 0; d < program.devices.size(); ++d) {
    if (d == 0 || program.devices[d] != nullptr) json.Value(DeviceName(program, d));
  }
  json.EndArray();
  WriteList(&json, "lost", LostDelegates(session.model()), [&](const LostDelegate& d) { WriteReason(&json, d.name, d.reason); });
  WriteList(&json, "partitions", plan.partitions, [&](const PlanPartition& p) { WritePartition(&json, program, p); });
  WriteList(&json, "steps", program.steps, [&](const Step& step) { WriteStep(&json, program, step); });
  json.Key("nodes");
  json.BeginArray();
  for (size_t n = 0; n < program.explanations.size(); ++n) WriteExplanation(&json, program.graph->nodes[n], program.explanations[n]);
  json.EndArray();
  json.EndObject();
  return json.Take();
}

std::string ProfileReport(const Session& session) {
  const int64_t start = session.profile().empty() ? 0 : session.profile().front().begin_nanos;
  int64_t total = 0;
  JsonWriter json;
  json.BeginObject();
  json.Key("steps");
  json.BeginArray();
  for (const StepTime& time : session.profile()) {
    const Program& program = *time.placed->program;
    const Step& step = program.steps[time.step];
    json.BeginObject();
    WriteNode(&json, program.graph->nodes[step.node]);
    if (session.model().module.graphs.size() > 1) json.Field("graph", program.graph->name);
    json.Field("kind", StepKindName(step.kind));
    json.Field("delegate", DelegateName(step));
    json.Field("algorithm", step.algorithm);
    json.Field("begin_us", static_cast<double>(time.begin_nanos - start) * 1e-3);
    json.Field("us", static_cast<double>(time.end_nanos - time.begin_nanos) * 1e-3);
    json.EndObject();
    total += time.end_nanos - time.begin_nanos;
  }
  json.EndArray();
  json.Field("total_us", static_cast<double>(total) * 1e-3);
  json.EndObject();
  return json.Take();
}

std::string MemoryReport(const Session& session, size_t cap_bytes) {
  const SessionMemory memory = session.memory();
  size_t bindings = 0, binding_bytes = 0, packed_bytes = 0;
  for (const auto& current : ProgramsOf(session.model())) {
    if (current == nullptr) continue;
    bindings += current->bindings->count();
    binding_bytes += current->bindings->bytes();
    packed_bytes += current->program->packed_bytes;
  }
  JsonWriter json;
  json.BeginObject();
  json.Field("arena_bytes", memory.arena_bytes);
  json.Field("frame_bytes", memory.frame_bytes);
  json.Field("arena_lower_bound_bytes", memory.arena_lower_bound_bytes);
  json.Field("scratch_bytes", memory.scratch_bytes);
  json.Field("output_bytes", memory.output_bytes);
  json.Field("state_bytes", memory.state_bytes);
  json.Field("total_bytes", memory.total());
  json.Field("cap_bytes", cap_bytes);
  json.Key("shared");  // with all sessions of the model
  json.BeginObject();
  json.Field("packed_bytes", packed_bytes);
  json.Field("bindings", bindings);
  json.Field("binding_bytes", binding_bytes);
  json.EndObject();
  json.EndObject();
  return json.Take();
}

}  // namespace msrt
