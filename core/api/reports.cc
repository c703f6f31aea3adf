// What a session tells about itself, as JSON: the plan, the time, the memory.
#include "core/api/json_writer.h"
#include "core/api/session.h"

namespace msrt {
namespace {

std::string_view StepKindName(StepKind kind) {
  switch (kind) {
    case StepKind::kKernel: return "kernel";
    case StepKind::kConvert: return "convert";
    case StepKind::kCopyToDevice: return "copy_to_device";
    case StepKind::kCopyToHost: return "copy_to_host";
    case StepKind::kView: return "view";
    case StepKind::kStateRead: return "state_read";
    case StepKind::kStateWrite: return "state_write";
  }
  return "unknown";
}

void WriteNode(JsonWriter* json, const Node& node) {
  json->Field("node", node.name);
  json->Field("op", OpName(node));
}

void WriteExplanation(JsonWriter* json, const Node& node, const NodeExplanation& why) {
  json->BeginObject();
  WriteNode(json, node);
  json->Field("delegate", why.delegate.empty() ? std::string_view("host") : why.delegate);
  json->Field("algorithm", why.algorithm);
  json->Field("estimated_us", why.seconds * 1e6);
  json->Key("others");
  json->BeginArray();
  for (const auto& [delegate, reason] : why.others) {
    json->BeginObject();
    json->Field("delegate", delegate);
    json->Field("reason", reason);
    json->EndObject();
  }
  json->EndArray();
  json->EndObject();
}

}  // namespace

std::string PlanReport(const Session& session) {
  const Program& program = session.program();
  JsonWriter json;
  json.BeginObject();
  json.Field("function", program.graph->name);
  json.Field("flops", program.flops);
  json.Field("packed_bytes", program.packed_bytes);
  json.Field("steps", program.steps.size());
  json.Key("nodes");
  json.BeginArray();
  for (size_t n = 0; n < program.explanations.size(); ++n) WriteExplanation(&json, program.graph->nodes[n], program.explanations[n]);
  json.EndArray();
  json.EndObject();
  return json.Take();
}

std::string ProfileReport(const Session& session) {
  const Program& program = session.program();
  const int64_t start = session.profile().empty() ? 0 : session.profile().front().begin_nanos;
  int64_t total = 0;
  JsonWriter json;
  json.BeginObject();
  json.Key("steps");
  json.BeginArray();
  for (const StepTime& time : session.profile()) {
    const Step& step = program.steps[time.step];
    json.BeginObject();
    WriteNode(&json, program.graph->nodes[step.node]);
    json.Field("kind", StepKindName(step.kind));
    json.Field("delegate", step.delegate.empty() ? std::string_view("host") : step.delegate);
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
  for (const auto& entry : session.model().entries) {
    const std::shared_ptr<const EntryProgram> current = entry->current();
    bindings += current->bindings->count();
    binding_bytes += current->bindings->bytes();
    packed_bytes += current->program->packed_bytes;
  }
  JsonWriter json;
  json.BeginObject();
  json.Field("arena_bytes", memory.arena_bytes);
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
